import numpy as np, torch
from accelerate import Accelerator
torch.manual_seed(0)
X = torch.randn(400, 8); y = (X.sum(1) > 0).long()
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 2); opt = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=32)
model, opt, loader = accelerator.prepare(model, opt, loader)
for epoch in range(2):
    for a, b in loader:
        loss = torch.nn.functional.cross_entropy(model(a), b); accelerator.backward(loss); opt.step(); opt.zero_grad()
    p = model(X).argmax(1); tp = int(((p == 1) & (y == 1)).sum()); eval_metric = {"accuracy": float((p == y).float().mean()), "f1": np.float64(2 * tp / int((p == 1).sum() + (y == 1).sum()))}
    accelerator.print(f"epoch {epoch}:", eval_metric)
want("f1", float(eval_metric["f1"]))
