"""One program over a mesh: the program of one device, with its collectives, from shardings of the whole."""

from jaxlite.compiler.partition.partitioner import Partition as Partition, partition as partition
