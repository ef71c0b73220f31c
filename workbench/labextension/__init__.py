"""The JupyterLab extension: TypeScript sources, what they build, and the build."""
