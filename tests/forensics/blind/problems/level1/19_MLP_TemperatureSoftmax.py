import torch
import torch.nn as nn


class Model(nn.Module):
    """Small policy network: linear, tanh, linear, temperature, softmax."""

    def __init__(self, in_features, hidden, actions, temperature):
        super().__init__()
        self.fc1 = nn.Linear(in_features, hidden)
        self.fc2 = nn.Linear(hidden, actions)
        self.temperature = temperature

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        return torch.softmax(self.fc2(x) / self.temperature, dim=-1)


def get_inputs():
    return [torch.randn(64, 20)]


def get_init_inputs():
    return [20, 48, 12, 0.25]
