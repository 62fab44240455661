"""The network between nodes: its shape, the links that a message crosses, and what messages that share them get."""
