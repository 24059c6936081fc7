"""HTML pages without a network: elements, documents, style and scripts."""
