// Command flaky runs one part of the tests with gotestsum, which runs what failed
// once more, and keeps a list of what needed that: a hiccup of a registry is no red
// day, and it is not hidden either.
//
//	flaky unit ./internal/... -- -count=1   runs a part
//	flaky list                              prints the list
//	flaky forget                            begins a new one
//
// A part is what one `go test` runs, and has a name; a test is flaky
// that failed and passed when it was run once more; the list is the file `flaky` in
// the folder .tests, beside what each part told, PART.json.
//
// gotestsum alone would take more for good than it may: it runs the failed tests of a
// package again, and not those that were never asked because the process ended, nor a
// check of TestMain after them. So what it says is judged once more (events.go).
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	folder = ".tests"
	// forgiven is how many tests of one part are run once more: where more fail, it
	// is no hiccup.
	forgiven = "10"
	// shown is how many lines the list has of what a test printed.
	shown = 12
)

func main() {
	t := tests{root: ".", dir: ".", out: os.Stdout}
	if err := t.command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(1)
	}
}

// tests are those of one module.
type tests struct {
	root string // the folder of tools.mod, which has gotestsum's version
	dir  string // the module's, in which the tests run and the list lies
	out  io.Writer
}

func (t tests) command(args []string) error {
	switch {
	case slices.Equal(args, []string{"list"}):
		return t.list()
	case slices.Equal(args, []string{"forget"}):
		return os.RemoveAll(filepath.Join(t.dir, folder))
	}
	cut := slices.Index(args, "--")
	if cut < 2 {
		return errors.New("usage: flaky PART PACKAGE... -- [FLAG OF GO TEST]..., flaky list, flaky forget")
	}
	return t.part(args[0], args[1:cut], args[cut+1:])
}

// part runs a part. The list is printed where it is red: make ends there.
func (t tests) part(name string, packages, flags []string) error {
	if err := os.MkdirAll(filepath.Join(t.dir, folder), 0o755); err != nil {
		return err
	}
	ran := t.gotestsum(name, packages, flags)
	file, err := os.Open(filepath.Join(t.dir, folder, name+".json"))
	if err != nil {
		return errors.Join(ran, err)
	}
	defer file.Close()
	happened, err := read(file)
	if err != nil {
		return errors.Join(ran, err)
	}
	again, red := happened.verdict()
	if err := t.note(name, again); err != nil {
		return err
	}
	if ran == nil && len(red) == 0 {
		return nil
	}
	all := []error{fmt.Errorf("the tests of %s are red", name), ran}
	for _, why := range red {
		all = append(all, errors.New(why))
	}
	return errors.Join(append(all, t.list())...)
}

// gotestsum runs the tests; its error is theirs.
func (t tests) gotestsum(part string, packages, flags []string) error {
	// Asked for its path it is built, too; run by `go tool` it would see our modfile.
	which := exec.Command("go", "tool", "-modfile=tools.mod", "-n", "gotestsum")
	which.Dir, which.Stderr = t.root, os.Stderr
	path, err := which.Output()
	if err != nil {
		return fmt.Errorf("gotestsum can't be built: %w", err)
	}
	args := []string{
		"--format=pkgname", "--hide-summary=skipped", "--jsonfile=" + filepath.Join(folder, part+".json"), "--packages=" + strings.Join(packages, " "),
		"--rerun-fails=1", "--rerun-fails-max-failures=" + forgiven, "--rerun-fails-abort-on-data-race", "--",
	}
	cmd := exec.Command(strings.TrimSpace(string(path)), append(args, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.dir, t.out, os.Stderr
	began := time.Now()
	err = cmd.Run()
	if cmd.ProcessState != nil {
		t.tellCost(part, time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	if err != nil {
		return fmt.Errorf("gotestsum: %w", err)
	}
	return nil
}

// tellCost says how long a part took, and how much of its processors' time its processes used; those
// that outlived their parents, as a daemon's sandboxes do, are not in it. A part that uses far less than
// there was waits for something.
func (t tests) tellCost(part string, took, used time.Duration) {
	fmt.Fprintf(t.out, "%s took %.0f s and used %.0f s of %d processors.\n", part, took.Seconds(), used.Seconds(), runtime.NumCPU())
}

// note adds flaky tests to the list.
func (t tests) note(part string, again []flaky) error {
	file, err := os.OpenFile(filepath.Join(t.dir, folder, "flaky"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	for _, f := range again {
		fmt.Fprintf(file, "%s of %s\n", f.Test, f.Package)
		for _, line := range f.Printed[max(0, len(f.Printed)-shown):] {
			fmt.Fprintf(file, "\t%s\n", strings.TrimRight(line, "\n"))
		}
		fmt.Fprintf(file, "\t(all of it: %s)\n", filepath.Join(folder, part+".json"))
	}
	return file.Close()
}

// list prints what is on the list.
func (t tests) list() error {
	text, err := os.ReadFile(filepath.Join(t.dir, folder, "flaky"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(text) == 0 {
		_, err = fmt.Fprintln(t.out, "No test was flaky.")
		return err
	}
	_, err = fmt.Fprintf(t.out, "FLAKY: these failed, and passed when they were run once more:\n%s", text)
	return err
}
