package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/selftest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// selftestTimeout bounds the whole self-test.
const selftestTimeout = 5 * time.Minute

func newAuditSelftest() *cobra.Command {
	var options selftest.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Try the log from an install to its proof, in a real sandbox",
		Long: `Starts a daemon with a state of its own and a registry on the loopback interface. A
real sandbox asks for three packages that were made for this: one that the policy
allows, one that it refuses, and one that waits for an approval, which is given. Then
it compares what it saw with every field of every record, and checks the order, the
clock, the export, the signed tree and the proof of each record.

It prints a line for each link of the chain, and exits with 1 if one is broken. It
needs no network. It uses your installation's template, and leaves everything else of
it alone, the log and the approvals included.`,
		Example: "  cofferdam audit selftest\n  cofferdam audit selftest --isolation gvisor --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSelftest(cmd.Context(), options, asJSON)
		},
	}
	set := cmd.Flags()
	isolationFlag(cmd, &options.Engine, "engine that isolates the sandbox, or auto or hardware (default: as run does)")
	set.StringVarP(&options.Template, "template", "t", "", "root filesystem; it must have pip (default: as run does)")
	set.BoolVar(&asJSON, "json", false, "write the checklist as JSON")
	return cmd
}

func runSelftest(ctx context.Context, o selftest.Options, asJSON bool) error {
	var err error
	if o.Executable, err = os.Executable(); err != nil {
		return err
	}
	if o.User, err = config.DefaultPaths(); err != nil {
		return err
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, selftestTimeout)
	defer cancel()
	report, err := selftest.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := writeAnswer(report, asJSON, writeSelftest); err != nil {
		return err
	}
	if !report.Sound {
		return &exitError{code: exitFailure, err: fmt.Errorf("the self-test found a broken link: %s", report.Broken)}
	}
	return nil
}

func writeSelftest(w io.Writer, report selftest.Report) error {
	var b strings.Builder
	for _, l := range report.Links {
		verdict := "ok    "
		if !l.Holds {
			verdict = "BROKEN"
		}
		fmt.Fprintf(&b, "%s  %s: %s\n", verdict, l.Name, ui.Printable(l.Detail))
	}
	fmt.Fprintf(&b, "%s, %s, %s\n", ui.Plural(report.Records, "record", "records"), ui.Plural(len(report.Links), "link", "links"), report.Took.Round(time.Second))
	_, err := io.WriteString(w, b.String())
	return err
}
