"""The workbench a person uses: studies, the command line, the web app and notebooks."""
