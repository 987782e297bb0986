package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

const (
	// proofTimeout bounds a proof: a sandbox and its twin, and what is tried in that.
	proofTimeout = 6 * time.Minute
	// proofLife is when a sandbox made for a proof ends if nobody ends it.
	proofLife = 10 * time.Minute
)

// proveFlags say of what the controls are to be proved.
type proveFlags struct {
	prove                                bool
	sandbox, policy, template, isolation string
}

func (f *proveFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.BoolVar(&f.prove, "prove", false, "try to get past each control, in a sandbox that is made for it")
	set.StringVar(&f.sandbox, "sandbox", "", "with --prove: the controls of this sandbox, in a twin of it")
	set.StringVarP(&f.policy, "policy", "p", "", "with --prove: policy document (default: a built-in one that allows no package)")
	set.StringVarP(&f.template, "template", "t", "", "with --prove: root filesystem (default: as run does)")
	isolationFlag(cmd, &f.isolation, "with --prove: engine that isolates the sandbox, or auto or hardware (default: as run does)")
	registerCompletion(cmd, "sandbox", completeSandboxes)
	registerCompletion(cmd, "policy", completePolicyFile)
	registerCompletion(cmd, "template", completeTemplates)
}

func (f *proveFlags) checkFlags() error {
	others := f.policy + f.template + f.isolation
	switch {
	case !f.prove && f.sandbox+others != "":
		return fault.Invalid("--sandbox, --policy, --template and --isolation say of what controls are proved; give --prove, too")
	case f.sandbox != "" && others != "":
		return fault.Invalid("the sandbox %s has its policy, template and engine; give none with --sandbox", f.sandbox)
	}
	return nil
}

// proveControls proves the controls of a sandbox that lives, or of one that is made for it.
func (f *proveFlags) proveControls(ctx context.Context) (*api.Controls, error) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	c, err := connectDaemon(ctx)
	if err != nil {
		return nil, err
	}
	of := f.sandbox
	if of == "" {
		box, err := f.makeSandbox(ctx, c)
		if err != nil {
			return nil, err
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quickTimeout)
			defer cancel()
			if err := c.DestroySandbox(ctx, box.ID); err != nil {
				ui.NewStderr(os.Stderr).Say("the sandbox %s of the proof is still there: %v", box.ID, err)
			}
		}()
		of = box.ID
	}
	var found api.Controls
	err = ui.ShowWaiting("trying to get past the controls", func() error {
		found, err = client.Controls(ctx, c, of)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// makeSandbox makes a sandbox as run would.
func (f *proveFlags) makeSandbox(ctx context.Context, c *client.Client) (api.Sandbox, error) {
	cwd, err := currentDirectory()
	if err != nil {
		return api.Sandbox{}, err
	}
	flags := runFlags{policy: f.policy, template: f.template, isolation: f.isolation, task: "has its controls proved"}
	req, err := flags.sandboxRequest(cwd)
	if err != nil {
		return api.Sandbox{}, err
	}
	req.Linger, req.Lifetime = true, api.Lifetime{TTLSeconds: int64(proofLife / time.Second)}
	var box api.Sandbox
	err = ui.ShowWaiting("making a sandbox", func() (err error) {
		box, err = c.CreateSandbox(ctx, req)
		return err
	})
	return box, err
}

// provenReport is a doctor's report with what was tried.
type provenReport struct {
	doctor.Report

	Proof *api.Controls `json:"proof,omitempty"`
}

// tellProof writes both, and fails if a check or a control did.
func tellProof(report doctor.Report, proof *api.Controls, asJSON bool) error {
	err := writeAnswer(provenReport{report, proof}, asJSON, func(w io.Writer, r provenReport) error {
		return errors.Join(r.WriteText(w), writeControls(w, *r.Proof))
	})
	if err != nil {
		return err
	}
	var failed []string
	for _, c := range proof.Controls {
		if c.Outcome == "failed" {
			failed = append(failed, c.Name)
		}
	}
	if len(failed) > 0 || !proof.Holds {
		return &exitError{code: exitFailure, err: fmt.Errorf("controls failed: %s", strings.Join(failed, ", "))}
	}
	return nil
}

func writeControls(w io.Writer, found api.Controls) error {
	width := 0
	for _, c := range found.Controls {
		width = max(width, len(c.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nControls of %s (template %s), tried in its twin %s:\n", ui.Printable(found.Engine), ui.Printable(found.Template), ui.Printable(found.Twin))
	for _, c := range found.Controls {
		outcome := c.Outcome
		if outcome == "failed" {
			outcome = "FAILED"
		}
		fmt.Fprintf(&b, "%-14s  %-*s  %s: %s\n", outcome, width, ui.Printable(c.Name), ui.Printable(c.Tried), ui.Printable(c.Says))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
