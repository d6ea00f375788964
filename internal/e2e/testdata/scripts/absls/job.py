from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_float("learning_rate", 0.1, "Initial learning rate.", lower_bound=0.0)
flags.DEFINE_integer("batch_size", 128, "Batch size.")
flags.DEFINE_integer("num_epochs", 3, "Passes over the data.")
flags.DEFINE_enum("schedule", "cosine", ["cosine", "step"], "How the rate falls.")
flags.DEFINE_bool("nesterov", False, "Nesterov momentum.")
flags.DEFINE_string("workdir", None, "Where to write.")
flags.mark_flag_as_required("workdir")


def main(argv):
    print("test_accuracy = %.3f" % (1 - FLAGS.learning_rate))


if __name__ == "__main__":
    app.run(main)
