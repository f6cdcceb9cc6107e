package main

import (
	"github.com/spf13/cobra"
)

// newCompletionCommand stands in for cobra's own, which has no examples and writes to the standard
// output of the process, whatever the command's is.
func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print what makes the Tab key complete commands in bash, zsh or fish",
		Long: `Print a script for a shell, one of bash, zsh and fish, with which the Tab key completes
commands and flags. Packages install these scripts.`,
		Example: `  source <(paidonce completion bash)     # in this shell; bash needs bash-completion
  paidonce completion zsh > "${fpath[1]}/_paidonce"
  paidonce completion fish > ~/.config/fish/completions/paidonce.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			default:
				return root.GenFishCompletion(out, true)
			}
		},
	}
}
