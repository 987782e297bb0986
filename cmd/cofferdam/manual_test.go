package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// TestManual: docs/cli.md is the help texts. COFFERDAM_UPDATE=1 writes it anew.
func TestManual(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "cli.md")
	var b bytes.Buffer
	b.WriteString("# The command line\n\nMade from the help texts (`cofferdam COMMAND --help`) by a test of cmd/cofferdam; COFFERDAM_UPDATE=1 writes it anew.\n")
	chapters(&b, newRoot())
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("docs/cli.md is not the help texts; COFFERDAM_UPDATE=1 writes it:\n%s", diff)
	}
}

// chapters writes a command and those below it that are shown.
func chapters(b *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", cmd.CommandPath())
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(b, "```\n%s\n```\n\n", cmd.UseLine())
	}
	fmt.Fprintf(b, "```text\n%s\n```\n", strings.TrimSpace(about))
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if flags := cmd.LocalNonPersistentFlags().FlagUsages(); flags != "" {
		// A flag whose value may be left out has a NUL for that, which pflag shows.
		flags = regexp.MustCompile(`\[=" *"\]\x00`).ReplaceAllString(flags, "[=...]  ")
		fmt.Fprintf(b, "\n```text\n%s```\n", flags)
	}
	for _, sub := range cmd.Commands() {
		chapters(b, sub)
	}
}

// TestEveryCommandHasExamples: who looks for help finds something to copy.
func TestEveryCommandHasExamples(t *testing.T) {
	t.Parallel()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.Runnable() && !cmd.Hidden && cmd.Name() != "help" && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(newRoot())
}
