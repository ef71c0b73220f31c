"""What does the work a step names: tensors, or a model of a device."""
