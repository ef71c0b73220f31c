"""Line and quantile charts on the shared canvas."""
