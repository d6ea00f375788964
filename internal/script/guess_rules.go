package script

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/berthml/berth"
)

// rule is what to do with flags of a name; ok is false when the flag's type does
// not fit, and the next rule is asked.
type rule struct {
	name  *regexp.Regexp
	apply func(g Guess, f Flag) (done Guess, ok bool)
}

// rules are asked in order. Names are lower case, with _ for -.
var rules = []rule{
	{regexp.MustCompile(`(^|_)(seed|random_state)$`), seed},
	{regexp.MustCompile(`^(save|saved|out|output)_models?(_?(dir|path|file|name|to))?$`), output},
	{regexp.MustCompile(`^(resume|pretrained|init|initial|teacher|base|load|restore|from)(_|$)|(^|_)(model|weights|checkpoint|ckpt|resume|pretrained)(_?(path|file|name|from))?$`), reads},
	{regexp.MustCompile(`(^|_)(out|outputs?|save|saved|logs?|results?|export|work|job|run|tb|tensorboard|checkpoints?|ckpts?)_?(dir|folder|root)$`), output},
	{regexp.MustCompile(`(^|_)(out|outputs?|save|saved|logs?|results?|save_to)(_?(path|file))?$`), output},
	{regexp.MustCompile(`(^|_)(device|devices|gpus?|gpu_ids?|cuda|host|hostname|node|workers?|threads|cpus|jobs|processes|n_?proc)$`), ofTheMachine},
	{regexp.MustCompile(`^(log|logging|verbos|debug|quiet|config|cfg|wandb|tensorboard|backend|local_rank|rank|world_size|dist|port|url)`), keep("it does not change the result")},
	{regexp.MustCompile(`(^|_)(prefetch|interval|freq|frequency|every|patience|warmup\w*)$`), keep("it is seldom worth a search")},
	{regexp.MustCompile(`(^|_)(in|out|input|output)_(channels?|chans|ch|dims?|features?|size|shape|units?|width)$|(^|_)(n|num)_?(channels|features|classes|inputs|outputs|labels|tokens)$|vocab_size$`), keep("the data decides it")},
	{regexp.MustCompile(`(^|_)(splits?|loss|loss_(fn|function|type|name)|criterion)$|^(train|test|val|valid|validation|data|split|holdout)_(ratio|frac|fraction|size|pct|percent)$|^target_`), keep("trials that differ in it do not compare")},
	{regexp.MustCompile(`(^|_)(dir|path|file|folder|root)$`), scratch},
	{regexp.MustCompile(`(^|_)(dir|path|file|folder|root|data|dataset|csv|input|inputs|train|test|valid)(_(dir|path|file|folder|root))?$`), data},
	{regexp.MustCompile(`(^|_)(epochs?|max_epochs|n_epochs|max_steps|total_steps|num_steps|train_steps|n_iters?|iterations?|max_iters?|steps_per_epoch|num_train_epochs)$`), length},
	{regexp.MustCompile(`(^|_)(lr|learning_rate|learningrate|step_size|eta|lr0|base_lr|init_lr|alpha_lr)$|^(lr|learning_rate)_(head|backbone|init|initial|base|max)$`), learningRate},
	{regexp.MustCompile(`(^|_)(weight_decay|wd|l2|l1|l2_reg|l1_reg|reg|regularization|l2_regularization)$`), decay},
	{regexp.MustCompile(`(^|_)(dropout|drop|drop_rate|dropout_rate|drop_path|dropout_prob)$|^dropout_`), unit(0, 0.5, "up to half")},
	{regexp.MustCompile(`(^|_)(label_smoothing|smoothing)$`), unit(0, 0.2, "up to a fifth")},
	{regexp.MustCompile(`(^|_)momentum$`), unit(0.5, 0.99, "where momentum is used")},
	{regexp.MustCompile(`(^|_)(gamma|lr_decay|decay_rate|decay)$`), decayRate},
	{regexp.MustCompile(`(^|_)(beta_?1|beta_?2|betas?|eps|epsilon|adam_\w+)$`), keep("it is seldom worth a search")},
	{regexp.MustCompile(`^(test|eval|val|valid|validation|infer\w*)_`), keep("it is about evaluation")},
	{regexp.MustCompile(`(^|_)(batch|batch_size|bs|batchsize|minibatch\w*)$|^batch_size_`), batch},
	{regexp.MustCompile(`(^|_)(hidden|hidden_size|hidden_dim|hidden_units|units?|width|filters?|channels?|dim|d_model|embedding|embed_dim|embedding_dim|emb_dim|neurons|features|n_hidden|latent_dim|base_channels)$`), width},
	{regexp.MustCompile(`(^|_)(layers?|depth|blocks?|num_layers|n_layers|stages)$`), depth},
	{regexp.MustCompile(`(^|_)(arch|architecture|model|backbone|net|network)(_(name|type))?$`), choice(true, "the script's choices; they change the memory")},
	{regexp.MustCompile(`(^|_)(optimizer|optim|opt|activation|scheduler|lr_scheduler|lr_schedule|norm|normalization|pooling|init|initializer)(_(name|type))?$`), choice(false, "the script's choices; memory: true, where one needs much more than another")},
}

func seed(g Guess, f Flag) (Guess, bool) {
	if f.Default != nil {
		return g.fixed(*f.Default, "fixed, so that trials differ by what is searched; TRIAL_SEED has one for each trial"), true
	}

	g = g.unknown(f)
	if !f.Required {
		g.Why = "TRIAL_SEED has a seed for each trial, if the script wants one"
	}

	return g, true
}

// keep leaves a flag at its default.
func keep(why string) func(Guess, Flag) (Guess, bool) {
	return func(g Guess, f Flag) (Guess, bool) {
		g = g.unknown(f)
		if f.Default != nil {
			g.Why = "kept: " + why
		}

		return g, true
	}
}

// reads keeps what a script reads, though its name may be that of a thing it writes.
func reads(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeString || len(f.Choices) > 0 {
		return g, false
	}

	return keep("the script may read it")(g, f)
}

// ofTheMachine leaves out what a script takes from the machine that it runs on:
// the look's is not the trial's.
func ofTheMachine(g Guess, f Flag) (Guess, bool) {
	g = g.unknown(f)
	if !f.Required {
		g.Left, g.Why = true, "the script takes it from the machine that it runs on"
	}

	return g, true
}

// output maps what a script writes to the directory that Berth keeps.
func output(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeString || len(f.Choices) > 0 {
		return g, false
	}

	if name := strings.ToLower(f.Dest); (name == "log" || name == "save") && f.Default != nil && !looksLikePath(f) {
		return g, false // such as --log=info
	}

	if f.Default == nil && !f.Required {
		g = g.fixed(berth.StringValue("/trial/out"), "files of a trial are kept from /trial/out; take it in if the script writes there")
		g.Left = true

		return g, true
	}

	target := "/trial/out"
	if f.Default != nil {
		if base := base(f.Default.String()); strings.Contains(base, ".") && !strings.HasPrefix(base, ".") {
			target += "/" + base
		}
	}

	return g.fixed(berth.StringValue(target), "files of a trial are kept from /trial/out"), true
}

// ofData matches what a script reads, wherever it lies.
var ofData = regexp.MustCompile(`data|csv|input|train|test|valid|cache|resume|pretrained|load|restore`)

// scratch is where a script writes by default when that is below /tmp, which a new
// container has empty: its author's model_dir=/tmp/model.
func scratch(g Guess, f Flag) (Guess, bool) {
	if f.Default == nil || !strings.HasPrefix(f.Default.String(), "/tmp/") || ofData.MatchString(strings.ToLower(f.Dest)) {
		return g, false
	}

	return output(g, f)
}

func looksLikePath(f Flag) bool {
	return f.Default != nil && strings.ContainsAny(f.Default.String(), "/.")
}

func base(path string) string {
	path = strings.TrimRight(path, "/")

	return path[strings.LastIndexByte(path, '/')+1:]
}

// data keeps where a script reads.
func data(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeString {
		return g, false
	}

	g = g.unknown(f)
	if !g.Left {
		g.Why += "; the data must be in the image"
	}

	return g, true
}

const fewEpochs = 5

func length(g Guess, f Flag) (Guess, bool) {
	switch {
	case f.Type != TypeInt && f.Type != TypeFloat:
		return g, false
	case f.Default != nil:
		return g.fixed(*f.Default, "the same for all trials, so that they compare; fewer make the search faster"), true
	case f.Required:
		return g.fixed(berth.IntValue(fewEpochs), "a few, for a first try"), true
	default:
		return g.unknown(f), true
	}
}

func learningRate(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeFloat {
		return g, false
	}

	const span = 30

	at := positive(f, 0.001)

	return g.float(f, round(at/span), min(round(at*span), max(1, at)), true, "a 30th to 30 times the default, on a log scale"), true
}

func decay(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeFloat {
		return g, false
	}

	return g.float(f, 1e-6, max(1e-2, positive(f, 0)), true, "on a log scale"), true
}

// unit is a part of one.
func unit(low, high float64, why string) func(Guess, Flag) (Guess, bool) {
	return func(g Guess, f Flag) (Guess, bool) {
		if f.Type != TypeFloat {
			return g, false
		}

		at := positive(f, low)
		if at >= 1 || f.Default == nil && !f.Required {
			return g.unknown(f), true
		}

		return g.float(f, min(low, at), max(high, at), false, why), true
	}
}

// decayRate is a factor near one, or a small number that Keras and others divide by.
func decayRate(g Guess, f Flag) (Guess, bool) {
	const factor, span = 0.5, 10

	if at := positive(f, 0); f.Type == TypeFloat && f.Default != nil && at < factor {
		return g.float(f, round(at/span), round(at*span), true, "a tenth to ten times the default, on a log scale"), true
	}

	return unit(factor, 0.999, "as rates of decay are")(g, f)
}

const usualBatch = 32

func batch(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeInt {
		return g, false
	}

	return g.doubles(f, usualBatch, "half to twice the default, in powers of two; it changes the memory")
}

func width(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeInt || f.Default == nil && !f.Required {
		return g, false
	}

	return g.doubles(f, usualBatch, "half to twice the default; it changes the memory")
}

func depth(g Guess, f Flag) (Guess, bool) {
	if f.Type != TypeInt || f.Default == nil && !f.Required {
		return g, false
	}

	at := positive(f, 2)
	if len(f.Choices) > 0 {
		return g.whole(f, []int64{int64(at) - 1, int64(at), int64(at) + 1}, "one less to one more than the default; it changes the memory"), true
	}

	low, high := max(1, at-1), at+1

	if f.Min != nil {
		low = max(low, math.Ceil(*f.Min))
	}

	if f.Max != nil {
		high = min(high, math.Floor(*f.Max))
	}

	if low >= high {
		return g.unknown(f), true
	}

	usual := ""
	if f.Default != nil && at >= low && at <= high && f.Default.String() == fmt.Sprint(at) {
		usual = defaultText(f.Default)
	}

	g.Parameters = []string{fmt.Sprintf("{name: %s, type: int, min: %.0f, max: %.0f%s, memory: true}", g.Name, low, high, usual)}
	g.Why, g.Searched, g.sizes = "one less to one more than the default; it changes the memory", true, int(high-low)+1

	return g, true
}

// choice searches what the script lists, where its name says that it matters.
func choice(memory bool, why string) func(Guess, Flag) (Guess, bool) {
	return func(g Guess, f Flag) (Guess, bool) {
		const few = 2
		if len(f.Choices) < few {
			return g, false
		}

		return g.choose(f.Choices, f.Default, memory, why), true
	}
}
