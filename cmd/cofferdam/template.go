package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cofferdam-dev/cofferdam/api"
)

func newTemplate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "template",
		Short:   "Build, list, show and remove root filesystems",
		GroupID: groupWork,
		Long: `A template is a read-only root filesystem with a digest. "host" shows this
machine's own /usr and is there at once; "debian" is built once, and so is "dev",
which has a C compiler and more besides. None shows anything of a home directory.
A run that names none gets debian if it is built, and host otherwise.`,
		Example: "  cofferdam template build debian\n  cofferdam template list\n  cofferdam template show debian\n  cofferdam template rm debian",
	}
	cmd.AddCommand(newTemplateBuild(), newTemplateList(), newTemplateShow(), newTemplateRemove())
	return cmd
}

func newTemplateList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the templates that can be used now",
		Example: "  cofferdam template list\n  cofferdam template list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			templates, err := c.Templates(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, templates)
			}
			rows := [][]string{{"TEMPLATE", "SIZE", "CREATED", "DIGEST"}}
			for _, t := range templates {
				digest := t.Digest
				if t.Outdated {
					digest += "  outdated: cofferdam template build " + t.Name
				}
				rows = append(rows, []string{t.Name, bytesText(t.Bytes), day(t.Created), digest})
			}
			return writeTable(os.Stdout, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newTemplateRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm TEMPLATE...",
		Aliases: []string{"remove"},
		Short:   "Remove templates that no sandbox uses",
		Example: "  cofferdam template rm debian",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			var failures []error
			for _, name := range names {
				if err := c.RemoveTemplate(ctx, name); err != nil {
					failures = append(failures, err)
				}
			}
			return errors.Join(failures...)
		},
		ValidArgsFunction: completeTemplates,
	}
}

func newTemplateBuild() *cobra.Command {
	var verbose, needed bool
	cmd := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Build a template",
		Long: `Builds a template and returns when it can be used. On a terminal, one line shows what
is being done; elsewhere only the result is printed, unless you give --verbose. Ctrl-C
ends the build and leaves nothing behind. A template's tools come through the gateway,
pinned by digest and recorded. templates/.NAME.log in the state directory has the
steps with their times, and what the installer printed.`,
		Example: "  cofferdam template build debian\n  cofferdam template build --verbose debian 2>build.log",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return buildTemplate(ctx, args[0], verbose, needed)
		},
		ValidArgsFunction: completeTemplates,
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "a line per step")
	cmd.Flags().BoolVar(&needed, "if-needed", false, "do nothing if it is built and not outdated")
	return cmd
}

func buildTemplate(ctx context.Context, name string, verbose, needed bool) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	if needed {
		if t, err := c.Template(ctx, name); err == nil && !t.Outdated {
			return nil
		}
	}
	show := newProgress(os.Stderr, verbose)
	built, err := c.BuildTemplate(ctx, name, show.step)
	show.done()
	switch {
	case ctx.Err() != nil:
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the build was ended; nothing of it is left")}
	case err != nil:
		return err
	}
	_, err = fmt.Printf("%s  %s  %s\n", printable(built.Name), bytesText(built.Bytes), printable(built.Digest))
	return err
}

// progress shows the steps of a build: one line that is written over at a
// terminal, a line each with verbose, else nothing.
type progress struct {
	w     io.Writer
	lines bool
	width int // of the terminal; 0: none
	dirty bool
}

func newProgress(f *os.File, verbose bool) *progress {
	p := &progress{w: f, lines: verbose}
	if fd := descriptor(f); !verbose && term.IsTerminal(fd) {
		p.width = usualCols
		if w, _, err := term.GetSize(fd); err == nil && w > 0 {
			p.width = w
		}
	}
	return p
}

func (p *progress) step(e api.TemplateEvent) {
	text := e.Step
	if e.Percent > 0 {
		text = fmt.Sprintf("%s %d%%", text, e.Percent)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	text = printable(text)
	switch {
	case p.lines:
		_, _ = fmt.Fprintln(p.w, text) // a build goes on when nobody watches
	case p.width > 0:
		if cells := []rune(text); len(cells) >= p.width {
			text = string(cells[:p.width-1])
		}
		_, _ = fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.dirty = true
	}
}

// done takes the line away.
func (p *progress) done() {
	if p.dirty {
		_, _ = fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func bytesText(n int64) string {
	switch {
	case n <= 0:
		return "-"
	case n < 1<<20:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}
