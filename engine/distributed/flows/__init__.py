"""Work and transfers on a clock on which transfers in flight share the channels they hold."""
