//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// answerOf is how a program ended.
type answerOf struct {
	out, err string
	code     int
}

// call runs a program to its end, whatever that is. The console has what it prints at once:
// where the machine is ended is seen there.
func call(ctx context.Context, argv ...string) (answerOf, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stdout), io.MultiWriter(&errs, os.Stdout)
	fmt.Printf("$ %s\n", strings.Join(argv, " "))
	err := cmd.Run()
	a := answerOf{out: strings.TrimSpace(out.String()), err: strings.TrimSpace(errs.String()), code: cmd.ProcessState.ExitCode()}
	fmt.Printf("exit code %d\n", a.code)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return a, err
	}
	return a, nil
}

// must runs a program that must succeed, and returns what it prints.
func must(ctx context.Context, argv ...string) (string, error) {
	a, err := call(ctx, argv...)
	if err == nil && a.code != 0 {
		err = fmt.Errorf("%s: exit code %d\n%s\n%s", strings.Join(argv, " "), a.code, a.out, a.err)
	}
	return a.out, err
}

// until waits for a condition, as long as the check may take.
func until(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it never was so: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// policyFile writes a policy document, and returns its path.
func policyFile(text string) (string, error) {
	f, err := os.CreateTemp("", "policy-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), errors.Join(err, f.Chmod(0o644), f.Close()) // the normal user reads it, too
}

// box is a sandbox that stays until it is removed.
type box struct {
	id string
}

func create(ctx context.Context, flags ...string) (box, error) {
	id, err := must(ctx, append([]string{"cofferdam", "create"}, flags...)...)
	return box{id: id}, err
}

// sh runs a script inside that must succeed.
func (b box) sh(ctx context.Context, script string) (string, error) {
	return must(ctx, "cofferdam", "exec", b.id, "--", "sh", "-c", script)
}

// state is what the daemon says of it.
func (b box) state(ctx context.Context) (string, error) {
	out, err := must(ctx, "cofferdam", "list", "--json")
	if err != nil {
		return "", err
	}
	var all []api.Sandbox
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	for _, one := range all {
		if one.ID == b.id {
			return one.State, nil
		}
	}
	return "", fmt.Errorf("sandbox %s is not listed: %s", b.id, out)
}

// remove takes it away, and wants nothing of its control group left.
func (b box) remove(ctx context.Context) error {
	if _, err := must(ctx, "cofferdam", "rm", b.id); err != nil {
		return err
	}
	if left := groups(b.id); len(left) > 0 {
		return fmt.Errorf("sandbox %s left %v", b.id, left)
	}
	return nil
}
