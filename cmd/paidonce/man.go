package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand is hidden: packages are built with it, and their users have man.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the man pages, one for each command, to a directory",
		Example: "  paidonce man ./man && man ./man/paidonce-serve.1",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // for everybody to read
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // it has the day of the build: two builds would differ
			literal(root)
			header := &doc.GenManHeader{
				Section: "1", Source: "Paidonce", Manual: "Paidonce",
			}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("man pages: %w", err)
			}
			return nil
		},
	}
}

// literal keeps what help texts say from being read as Markdown, as the pages' generator does:
// placeholders such as <id> would be taken for HTML, and PAIDONCE_… for emphasis.
func literal(c *cobra.Command) {
	c.Long = markdownEscapes.Replace(c.Long)
	c.Short = markdownEscapes.Replace(c.Short)
	for _, sub := range c.Commands() {
		literal(sub)
	}
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, `<`, `\<`, `*`, `\*`, `_`, `\_`, "`", "\\`")
