package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// importFlags are what `advisory import` was asked for.
type importFlags struct {
	request api.ImportAdvisories
	json    bool
	verbose bool
}

func newAdvisoryImport() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{
		Use:   "import PATH",
		Short: "Import advisories of malware, or a popularity list",
		Long: `Imports from PATH: a directory (every *.json in it), a zip or a JSON file of OSV
records, or a popularity list with one name per line, the most popular first. What
the label imported before is replaced at once, and only if all of PATH can be read.
Records of malware (MAL-) and of vulnerabilities are kept; withdrawn ones are skipped.

Afterwards the log is searched for releases that were let in before they were known
to be malicious. They are printed, and recorded as alarms. A list is about the
ecosystem of --popular, or of its first line, such as "# ecosystem: python".

A daemon on this host reads PATH itself; one on the network gets the bytes of a file.`,
		Example: `  cofferdam advisory import malicious-packages/osv
  cofferdam advisory import npm/all.zip --as npm
  cofferdam advisory import --popular node top-node.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			flags.request.Path = path
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return flags.runImport(ctx)
		},
		ValidArgsFunction: completeFirst(anyFile),
	}
	set := cmd.Flags()
	set.StringVar(&flags.request.Label, "as", "", "`LABEL` of the import; the same label is replaced by the next one (default: PATH's last part)")
	set.StringVar(&flags.request.Popular, "popular", "", "PATH is a popularity list of this `ECOSYSTEM`")
	set.BoolVar(&flags.request.KeepGoing, "keep-going", false, "leave out what can't be read instead of replacing nothing")
	set.BoolVar(&flags.json, "json", false, "write JSON")
	set.BoolVarP(&flags.verbose, "verbose", "v", false, "a line per step")
	registerCompletion(cmd, "as", completeLabels)
	registerCompletion(cmd, "popular", completeWords(ecosystemNames()...))
	return cmd
}

// importAdvisories has the daemon read the path if it is on this host; over the network it gets the
// file's bytes.
func (f importFlags) importAdvisories(ctx context.Context, c *client.Client, progress func(api.AdvisoryEvent)) (api.AdvisoryImport, error) {
	if !c.Remote() {
		return c.ImportAdvisories(ctx, f.request, progress)
	}
	p, err := openNamed(f.request.Path)
	if err != nil {
		return api.AdvisoryImport{}, fault.Invalid("%s %s", f.request.Path, because(err))
	}
	defer p.Close()
	if p.ID.Type == hostpath.Dir {
		return api.AdvisoryImport{}, fault.Invalid("%s is a directory, and a daemon on the network takes a file: import a zip of it", f.request.Path)
	}
	file, err := p.Reader()
	if err != nil {
		return api.AdvisoryImport{}, fault.Invalid("%s %s", f.request.Path, because(err))
	}
	defer func() { _ = file.Close() }()
	if f.request.Label == "" {
		f.request.Label = filepath.Base(f.request.Path)
	}
	return c.UploadAdvisories(ctx, f.request, file, progress)
}

func (f importFlags) runImport(ctx context.Context) error {
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	show := ui.NewSteps(os.Stderr, f.verbose)
	done, err := f.importAdvisories(ctx, c, func(e api.AdvisoryEvent) {
		show.Show(e.Step, e.Detail, e.Percent)
	})
	show.Done()
	if err != nil && ctx.Err() != nil {
		return &exitError{code: exitSignalBase + int(syscall.SIGINT), err: errors.New("the import was ended; `cofferdam advisory status` tells what counts")}
	}
	if f.json {
		return errors.Join(ui.WriteJSON(os.Stdout, done), err)
	}
	if err != nil {
		for _, p := range done.Problems {
			_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", ui.Printable(p.Where), ui.Printable(p.Reason)) // the error follows
		}
		return err
	}
	return writeImport(os.Stdout, done)
}
