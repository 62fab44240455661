"""Print what makes a shell complete verbs and options.

bash:  source <(ranksight completion bash)                              (in ~/.bashrc)
zsh:   source <(ranksight completion zsh)                               (in ~/.zshrc, after compinit)
fish:  ranksight completion fish > ~/.config/fish/completions/ranksight.fish
"""

USAGE = "ranksight completion bash|zsh|fish"
OPTIONS = {
    "shell": {"choices": ("bash", "zsh", "fish"), "help": "shell to complete for"},
}
