import numpy as np, torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed
set_seed(0)
rng = np.random.default_rng(0)
def data(n):
    ids = rng.integers(5, 50, (n, 12)); return [{"input_ids": torch.tensor(i), "labels": torch.tensor(int((i < 27).sum() > 6))} for i in ids]
model = BertForSequenceClassification(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32))
def metrics(p): return {"accuracy": float((p.predictions.argmax(1) == p.label_ids).mean())}
t = Trainer(model, TrainingArguments("/tmp/o", num_train_epochs=3, evaluation_strategy="epoch", logging_steps=10, per_device_train_batch_size=16, learning_rate=1e-2, report_to=[], save_strategy="no", no_cuda=True),
            train_dataset=data(960), eval_dataset=data(100), compute_metrics=metrics)
t.train()
want("eval_accuracy", [h for h in t.state.log_history if "eval_accuracy" in h][-1]["eval_accuracy"])
