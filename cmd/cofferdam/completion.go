package main

import (
	"os"

	"github.com/spf13/cobra"
)

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:     "completion bash|zsh|fish",
		Short:   "Write a completion script for a shell",
		GroupID: groupHost,
		Long: `Writes a script that teaches a shell to complete commands, flags, and the names
of templates, engines, runs and sandboxes.`,
		Example: `  bash:  source <(cofferdam completion bash)
  zsh:   cofferdam completion zsh > "${fpath[1]}/_cofferdam"
  fish:  cofferdam completion fish > ~/.config/fish/completions/cofferdam.fish`,
		Args:      cobra.MatchAll(cobra.OnlyValidArgs, cobra.ExactArgs(1)),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(os.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(os.Stdout)
			default:
				return root.GenFishCompletion(os.Stdout, true)
			}
		},
	}
}
