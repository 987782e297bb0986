package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// copyMost bounds what one copy out of a sandbox writes to this machine: what is
// in it is the sandbox's to say, and it could go on for ever.
const (
	copyMost    = 16 << 30
	copyEntries = 200_000
	copyDepth   = 100
)

func newCopy() *cobra.Command {
	c := copying{limit: copyMost, out: os.Stderr}
	cmd := &cobra.Command{
		Use:     "cp [flags] SOURCE TARGET",
		Short:   "Copy files into a sandbox, or out of it",
		GroupID: groupWork,
		Long: `Copies a file, or a directory with everything in it. One of SOURCE and TARGET is
SANDBOX:PATH; the other is on this machine, or "-" for stdin or stdout. A PATH inside
is absolute, or relative to the home of the sandbox's user. If the target is a
directory, or ends in /, the copy goes into it under the source's name. Each file is
replaced in one step, or left as it was.

Code in the sandbox decides what comes out of it. So nothing is written outside the
target, by any name or through any link. A symbolic link is made only if it leads into
what was copied. Devices and sockets are skipped, and set-uid bits are dropped. Names
that tools on this machine run (.git, .envrc, Makefile, ...) are pointed out. Nothing
is executed. Links on this machine are not followed into a sandbox.`,
		Example: `  cofferdam cp task.py sb4f1c:
  cofferdam cp project sb4f1c:/workspace
  cofferdam cp sb4f1c:/workspace/out.csv .
  cofferdam cp sb4f1c:/workspace/plots plots
  cofferdam cp sb4f1c:result.json -`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return c.runCopy(ctx, args[0], args[1])
		},
		ValidArgsFunction: completeCopy,
	}
	cmd.Flags().StringVarP(&c.user, "user", "u", "", "user inside whose rights count: root, the sandbox's own, or a user's number")
	registerCompletion(cmd, "user", completeWords("root"))
	cmd.Flags().Int64Var(&c.limit, "max-bytes", copyMost, "copy no more than so many bytes out of a sandbox")
	incomplete(cmd, "max-bytes")
	return cmd
}

// copying is one `cofferdam cp`.
type copying struct {
	client *client.Client
	box    string
	user   string
	limit  int64
	out    io.Writer // for people
	notes  []string
	failed int
}

// copyEnd is an end of a copy.
type copyEnd struct {
	box  string // "": this machine
	path string
}

var sandboxName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func placeOf(text string) copyEnd {
	box, inside, found := strings.Cut(text, ":")
	if !found || !sandboxName.MatchString(box) {
		return copyEnd{path: text}
	}
	if inside == "" {
		inside = "~/"
	}
	return copyEnd{box: box, path: inside}
}

func (c *copying) runCopy(ctx context.Context, source, target string) error {
	from, to := placeOf(source), placeOf(target)
	switch {
	case from.box != "" && to.box != "":
		return fault.Invalid("both are in sandboxes; copy out of one first, then into the other")
	case from.box == "" && to.box == "":
		return fault.Invalid("neither is in a sandbox; write SANDBOX:PATH for one of them, as in: cofferdam cp task.py sb4f1c:/workspace/")
	case c.limit <= 0:
		return fault.Invalid("--max-bytes is %d; it must be above 0", c.limit)
	}
	var err error
	if c.client, err = connectDaemon(ctx); err != nil {
		return err
	}
	if from.box != "" {
		c.box = from.box
		err = c.fetch(ctx, from.path, to.path)
	} else {
		c.box = to.box
		err = c.send(ctx, from.path, to.path)
	}
	for _, note := range c.notes {
		_, _ = fmt.Fprintf(c.out, "cofferdam: %s\n", ui.Printable(note))
	}
	if err != nil {
		return givenUp(ctx, err)
	}
	if c.failed > 0 {
		return fmt.Errorf("%d of the files were not copied", c.failed)
	}
	return nil
}

func (c *copying) insideFile(inside string) client.File {
	return client.File{Path: inside, User: c.user}
}

// addNote keeps a line for the end, not too many of them.
func (c *copying) addNote(format string, args ...any) {
	const most = 20
	switch {
	case len(c.notes) < most:
		c.notes = append(c.notes, fmt.Sprintf(format, args...))
	case len(c.notes) == most:
		c.notes = append(c.notes, "and more")
	}
}

// addFailure notes what was to be copied and was not.
func (c *copying) addFailure(format string, args ...any) {
	c.failed++
	c.addNote(format, args...)
}

// dirInside reports whether a path of the sandbox is a directory, or a link to one: what is written to
// the path goes through the link, too.
func (c *copying) dirInside(ctx context.Context, inside string) (bool, error) {
	info, err := c.client.StatFile(ctx, c.box, c.insideFile(inside))
	if client.StatusOf(err) == http.StatusNotFound {
		if _, gone := c.client.Sandbox(ctx, c.box); gone != nil {
			return false, gone // it is the sandbox that there is not
		}
		return false, nil
	}
	if err == nil && info.Kind == "symlink" {
		for _, err := range c.client.ListFiles(ctx, c.box, c.insideFile(inside), 1) {
			return err == nil, nil // only directories have a list; else writing says what is wrong
		}
		return true, nil
	}
	return info.Kind == "dir", err
}

// joinInside joins a path inside with a name.
func joinInside(dir, name string) string {
	if dir == "~" || strings.HasPrefix(dir, "~/") {
		return "~/" + path.Join(strings.TrimPrefix(strings.TrimPrefix(dir, "~"), "/"), name)
	}
	return path.Join(dir, name)
}

// completeCopy completes files of this machine, and sandboxes with a colon.
func completeCopy(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	found, _ := completeSandboxes(cmd, args, word)
	for i := range found {
		id, about, _ := strings.Cut(found[i], "\t")
		found[i] = id + ":\t" + about
	}
	return found, cobra.ShellCompDirectiveNoSpace
}
