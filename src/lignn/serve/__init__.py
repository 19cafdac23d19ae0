"""An HTTP service over a model, the journal of its changes, and a page to label with. Needs the extra `serve`."""
