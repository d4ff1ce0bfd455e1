"""Payloads as HTML that needs no server, no network and no scripts to be read."""

from jaxlite_jupyter.html.base import page as page, text_html as text_html
from jaxlite_jupyter.html.fusion import fusion_html as fusion_html
from jaxlite_jupyter.html.graph import graph_html as graph_html
from jaxlite_jupyter.html.sharding import sharding_html as sharding_html
