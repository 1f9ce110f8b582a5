"""The files of ``/v1/files``: a bounded store in a folder, and how an upload gets into it."""
