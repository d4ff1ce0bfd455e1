"""What a viewer shows, as plain data (JSON-safe dicts with a version) and as text."""

from jaxlite.core.progress import Progress as Progress, watching as watching
from jaxlite.inspect.fusion import fusion_payload as fusion_payload
from jaxlite.inspect.graph import graph_payload as graph_payload
from jaxlite.inspect.memory import memory_in_use as memory_in_use, release_memory as release_memory
from jaxlite.inspect.sharding import sharding_payload as sharding_payload, sharding_text as sharding_text
from jaxlite.inspect.splits import Split as Split, call_split as call_split, compilation_split as compilation_split
from jaxlite.inspect.text import fusion_text as fusion_text, graph_text as graph_text
