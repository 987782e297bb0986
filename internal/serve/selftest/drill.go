package selftest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
)

// wiring looks at the drill's log the way that its users do.
func (in *installation) wiring() Wiring {
	return Wiring{
		Clock: time.Now,
		Records: func(ctx context.Context) ([]audit.Record, error) {
			return decodeLines[audit.Record](in.client.Records(ctx, client.RecordFilter{}))
		},
		Export: in.export,
		Verify: func(ctx context.Context) (audit.Verdict, error) {
			return audit.Verify(ctx, in.paths.Audit(), audit.VerifyOptions{})
		},
		Prove: func(record uint64) (audit.Proof, error) { return audit.Prove(in.paths.Audit(), record) },
		Keys:  func() (checkpoint.Keyring, error) { return publicKeys(in.paths.Audit()) },
	}
}

// publicKeys are the log's public keys, as an auditor is given them.
func publicKeys(dir string) (checkpoint.Keyring, error) {
	text, err := os.ReadFile(filepath.Join(dir, audit.PublicKeysName))
	if err != nil {
		return checkpoint.Keyring{}, err
	}
	return checkpoint.NewKeyring(string(text))
}

// playDrill is the drill.
func (in *installation) playDrill(ctx context.Context, e *Evidence) error {
	if err := in.startInstallation(ctx, e.Releases); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(document))
	e.Run, e.Task, e.User, e.Policy = "selftest", task, userName(), "sha256:"+hex.EncodeToString(sum[:])
	box, err := in.client.CreateSandbox(ctx, api.CreateSandbox{
		Run: e.Run, Task: e.Task, Template: in.template, Engine: in.options.Engine, Linger: true, Policy: api.Policy{Document: []byte(document)},
	})
	if err != nil {
		return fmt.Errorf("make the sandbox: %w", err)
	}
	e.Sandbox = box.ID
	for i, step := range drillPlan() {
		c, err := in.runCommand(ctx, box.ID, step.argv)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(step.argv, " "), err)
		}
		e.Commands = append(e.Commands, c)
		if _, err := in.client.RunSummary(ctx, e.Run); err != nil { // it waits until the command's end is on record
			return err
		}
		if i == approveAfter {
			if e.Request, err = in.approve(ctx, e.Releases[held]); err != nil {
				return err
			}
		}
	}
	return in.client.DestroySandbox(ctx, box.ID)
}

// runCommand runs a command to its end.
func (in *installation) runCommand(ctx context.Context, box string, argv []string) (Command, error) {
	c := Command{Argv: argv}
	started, err := in.client.StartCommand(ctx, box, api.StartCommand{Argv: argv})
	if err != nil {
		return c, err
	}
	at, err := in.client.Attach(ctx, box, started.ID, 0)
	if err != nil {
		return c, err
	}
	defer func() { _ = at.Close() }() // the command has ended, or we gave up on it
	for event, err := range at.Events() {
		if err != nil {
			return c, err
		}
		c.Output += string(event.Stdout) + string(event.Stderr)
		if event.Exit != nil {
			c.Exit = event.Exit.Code
			return c, nil
		}
	}
	return c, fmt.Errorf("it ended without an exit code")
}

// approve answers the one request that waits, bound to the file that the registry
// has. No request is no error: the links say what that means.
func (in *installation) approve(ctx context.Context, r *Release) (string, error) {
	page, err := in.client.Approvals(ctx, client.ApprovalFilter{States: []string{string(approval.Pending)}})
	if err != nil {
		return "", fmt.Errorf("read the approval queue: %w", err)
	}
	for _, raw := range page.Approvals {
		var request approval.Request
		if err := json.Unmarshal(raw, &request); err != nil {
			return "", err
		}
		if request.Package.Name != r.Name {
			continue
		}
		shown, err := digests(request, r)
		if err != nil {
			return "", err
		}
		_, err = in.client.AnswerApprovals(ctx, api.AnswerApprovals{
			IDs: []string{request.ID}, State: string(approval.Approved), Scope: string(approval.ScopeRun), Reason: task,
			Digests: map[string][]string{request.ID: shown}, Revisions: map[string]uint64{request.ID: request.Revision},
		})
		return request.ID, err
	}
	return "", nil
}

// digests are those that the request shows, if they are of the registry's file
// and of no other.
func digests(request approval.Request, r *Release) ([]string, error) {
	if len(request.Files) != 1 || request.Files[0].Name != r.File || !slices.Contains(request.Files[0].Digests, "sha256:"+r.SHA256) {
		return nil, fmt.Errorf("the request %s shows other files than the registry has: %+v", request.ID, request.Files)
	}
	return request.Files[0].Digests, nil
}

// userName is how the daemon names whoever asks it.
func userName() string {
	uid := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(uid); err == nil {
		return u.Username
	}
	return uid
}
