"""The stage that hosts views: feed, time cursor, figures, comparison."""
