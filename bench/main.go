// Command bench measures what a user waits for, and prints one table: create,
// exec, destroy, install, index, download, memory. Each figure that has a peer
// or a floor is measured beside it in the same run, the two taking turns, so
// that whatever else the machine does strikes both.
//
// A measurement of Cofferdam (the subject) takes turns with one of the peer or floor beside it (the
// reference); a round is one of each. Figures in a part share a set-up.
//
// It needs what `make build` makes. It has an installation of its own in a temporary directory, and
// shares the repository's debian template. It tells on stderr what it does, and when each part
// began and ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	bin    string // directory with cofferdam and runsc
	json   bool
	rounds float64
	only   []string
}

// part measures into the bench's table.
type part struct {
	name    string
	measure func(context.Context, *bench) error
}

func parts() []part {
	return []part{
		{"create", measureCreate},
		{"run", measureRun},
		{"peers", measurePeers},
		{"exec", measureExec},
		{"packument", measurePackument},
		{"install", measureInstall},
		{"projects", measureProjects},
		{"parallel", measureParallel},
		{"verdaccio", measureVerdaccio},
		{"freeze", measureFreeze},
		{"life", measureLife},
		{"index", measureIndex},
		{"download", measureDownload},
		{"network", measureNetwork},
		{"auditlog", measureAudit},
		{"scan", measureScan},
		{"call", measureCall},
		{"mcp", measureMCP},
		{"callable", measureCallable},
		{"interpreter", measureInterpreter},
		{"auditquery", measureQueries},
		{"engines", measureEngines},
		{"size", measureSize},
	}
}

func main() {
	if args := os.Args[1:]; len(args) == 5 && args[0] == serveVerb { // inside a sandbox
		fmt.Fprintln(os.Stderr, "bench:", serveFiles(context.Background(), args[1], args[2], args[3], args[4]))
		os.Exit(1)
	}
	if len(os.Args) == 2 && os.Args[1] == askVerb { // inside a sandbox
		if err := serveAsks(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == exitVerb { // inside a container
		return
	}
	opts, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var names []string
	for _, p := range parts() {
		names = append(names, p.name)
	}
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.bin, "bin", "bin", "directory with cofferdam and runsc")
	flags.BoolVar(&o.json, "json", false, "print the table as JSON")
	flags.Float64Var(&o.rounds, "rounds", 1, "multiply the number of rounds (0.1: a quick look)")
	only := flags.String("only", "", "comma-separated parts of "+strings.Join(names, ", ")+" (default all)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds <= 0 {
		return o, fmt.Errorf("-rounds is %v; it must be above 0", o.rounds)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("there is no part %q; parts are %s", name, strings.Join(names, ", "))
		}
	}
	var err error
	o.bin, err = filepath.Abs(o.bin)
	return o, err
}

// run sets up, measures every part that is wanted, and prints the table.
func run(ctx context.Context, opts options) (err error) {
	started := time.Now()
	b := &bench{opts: opts, progress: newProgress(os.Stderr)}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.setUp(ctx); err != nil {
		return err
	}
	if err := b.memory("at rest"); err != nil {
		return err
	}
	wanted := slices.DeleteFunc(parts(), func(p part) bool { return len(opts.only) > 0 && !slices.Contains(opts.only, p.name) })
	for i, p := range wanted {
		b.progress.line("part %d of %d, %s", i+1, len(wanted), p.name)
		began := time.Now()
		if err := p.measure(ctx, b); err != nil {
			b.progress.clear()
			return errors.Join(b.table.writeText(os.Stdout), fmt.Errorf("%s: %w", p.name, err)) // what there is by then
		}
		b.progress.line("part %d of %d, %s: done in %s", i+1, len(wanted), p.name, time.Since(began).Round(time.Second))
	}
	if err := b.memory("after all of it"); err != nil {
		return err
	}
	b.progress.clear()
	b.table.Took = time.Since(started).Round(time.Second).String()
	if opts.json {
		return b.table.writeJSON(os.Stdout)
	}
	return b.table.writeText(os.Stdout)
}
