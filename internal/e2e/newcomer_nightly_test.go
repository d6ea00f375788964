//go:build integration && nightly

package e2e

import (
	"testing"

	"github.com/berthml/berth"
)

var otherNewcomers = []newcomer{
	{
		name: "spirals", image: "berth-examples/torch:1",
		learned: "11 flags of click; searched: lr, batch_size, dropout, weight_decay; fixed: epochs, seed; at the script's default: hidden, depth, opt, num_workers, cpu",
		parameters: []string{
			`{"name":"lr","type":"float","min":0.0001,"max":0.03,"log":true,"default":0.003}`,
			`{"name":"batch_size","type":"categorical","values":[32,64,128],"default":64,"memory":true}`,
			`{"name":"dropout","type":"float","min":0,"max":0.5,"default":0.0}`,
			`{"name":"weight_decay","type":"float","min":0.000001,"max":0.01,"log":true}`,
			`{"name":"epochs","type":"fixed","value":8}`,
			`{"name":"seed","type":"fixed","value":0}`,
		},
		objective: berth.Objective{Metric: "val_loss", Goal: berth.GoalMinimize, Strategy: "last"},
		source:    "stdout",
		model:     "work/checkpoints/best.pt", // a relative path of the script's: its working directory is kept
		keepsBest: true,
		loads: "import torch, train; from torch.utils.data import DataLoader, TensorDataset, random_split; c = torch.load('/best/work/checkpoints/best.pt'); " +
			"w = c['model']; depth = len([k for k in w if k.startswith('body') and k.endswith('weight')]); net = train.Net(w['head.weight'].shape[1], depth, 0.0); " +
			"net.load_state_dict(w); torch.manual_seed(0); _, v = random_split(TensorDataset(*train.make_spirals(600, 0.3, 0)), [1400, 400]); " +
			"train.evaluate(net, DataLoader(v, batch_size=256), torch.nn.CrossEntropyLoss(), 'cpu'); print('value', c['val_loss'])",
	},
	{
		name: "waves", image: "berth-examples/jax:1",
		learned: "9 flags of absl; searched: learning_rate, batch_size; fixed: num_epochs, seed, model_dir; at the script's default: momentum, width, num_layers, activation",
		parameters: []string{
			`{"name":"learning_rate","type":"float","min":0.0003,"max":0.1,"log":true,"default":0.01}`,
			`{"name":"batch_size","type":"categorical","values":[32,64,128],"default":64,"memory":true}`,
			`{"name":"num_epochs","type":"fixed","value":30}`,
			`{"name":"seed","type":"fixed","value":0}`,
			`{"name":"model_dir","type":"fixed","value":"/trial/out"}`,
		},
		objective: berth.Objective{Metric: "validation_loss", Goal: berth.GoalMinimize, Strategy: "last"},
		source:    "stdout",
		model:     "params.npz",
		loads: "import numpy as np, train; f = np.load('/best/params.npz'); n = len(f.files) // 2; " +
			"params = [(f['w%d' % i], f['b%d' % i]) for i in range(n)]; _, (x, y) = train.make_data(0); " +
			"print('value', float(((train.predict(params, x, 'tanh') - y) ** 2).mean()))",
	},
}

// The same for PyTorch with click, and for JAX with absl.
func TestNewcomer_OtherFrameworks(t *testing.T) { //nolint:tparallel // the trials run in parallel
	t.Parallel()

	for _, n := range otherNewcomers { //nolint:paralleltest // they share two cores
		t.Run(n.name, func(t *testing.T) { n.walk(t, plain(t)) })
	}
}
