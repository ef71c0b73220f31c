"""Pipeline parallelism: a schedule carried out on ranks or on a virtual clock."""
