"""From generated C to an image for a microcontroller, and its proof on an emulated one."""
