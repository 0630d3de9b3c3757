"""The files from which a job continues: state by shard, manifests, the journal of epochs, repair."""
