"""What a viewer shows, as plain data (JSON-safe dicts with a version) and as text."""

from jaxlite.inspect.fusion import fusion_payload as fusion_payload
from jaxlite.inspect.graph import graph_payload as graph_payload
from jaxlite.inspect.text import fusion_text as fusion_text, graph_text as graph_text
