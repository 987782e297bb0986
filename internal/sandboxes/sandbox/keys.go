package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

const (
	keyLife = 24 * time.Hour // of an idempotency key, from its create on
	// keyWait is how long a request waits for another one with its key, before it is told to come again:
	// less than clients wait for an answer.
	keyWait = 30 * time.Second
)

// Conflicts of idempotency keys, which clients tell apart.
var (
	// ErrKeyMismatch: the key was used for a request that asked for something else.
	ErrKeyMismatch = errors.New("the idempotency key is another request's")
	// ErrKeyUnderway: a request with the key still makes its sandbox.
	ErrKeyUnderway = errors.New("the idempotency key's request is under way")
)

// keys are the idempotency keys of creates, by owner. Safe for concurrent use.
type keys struct {
	mu       sync.Mutex // guards promises
	promises map[string]*promise
}

func newKeys() *keys { return &keys{promises: map[string]*promise{}} }

// promise is a create with an idempotency key: under way, or done.
type promise struct {
	request string // digest of what was asked for
	begun   time.Time
	ready   chan struct{} // closed when it is done; sandbox may be read then
	sandbox *Sandbox      // nil: it failed
}

// promiseName tells one owner's keys from another's.
func promiseName(o Owner, key string) string { return o.Token + "\x00" + key }

// createOnce makes a sandbox, or returns the one that the same owner's request with the
// same key has made before and that lives, also when that is still under way. A key is remembered as long
// as its sandbox is (the journal has it), so that there are no more of them than of sandboxes.
func (k *keys) createOnce(ctx context.Context, req Request, create func(digest string) (*Sandbox, error)) (*Sandbox, error) {
	if req.IdempotencyKey == "" {
		return create("")
	}
	digest, err := digestOf(req)
	if err != nil {
		return nil, err
	}
	over := time.NewTimer(keyWait)
	defer over.Stop()
	for {
		p, mine := k.promised(promiseName(req.Owner, req.IdempotencyKey), digest)
		if mine {
			return k.keepPromise(p, promiseName(req.Owner, req.IdempotencyKey), create)
		}
		if p.request != digest {
			return nil, fault.Wrap(fault.ErrConflict, ErrKeyMismatch, "the idempotency key %q was used for another request", req.IdempotencyKey)
		}
		select {
		case <-p.ready:
		case <-over.C:
			return nil, &fault.Fault{
				Category: fault.ErrConflict, Cause: ErrKeyUnderway, Retry: time.Second,
				Sentence: fmt.Sprintf("the request with the idempotency key %q still makes its sandbox; ask again", req.IdempotencyKey),
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if p.isLive() {
			return p.sandbox, nil
		}
	}
}

// promised is the promise of a name; a new one, which is the caller's to keep, if
// there is none that holds any more.
func (k *keys) promised(name, digest string) (_ *promise, mine bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.promises[name]; p != nil && (!p.isDone() || p.isLive() && time.Since(p.begun) < keyLife) {
		return p, false
	}
	p := &promise{request: digest, begun: time.Now(), ready: make(chan struct{})}
	k.promises[name] = p
	return p, true
}

// keepPromise makes the sandbox of a promise.
func (k *keys) keepPromise(p *promise, name string, create func(digest string) (*Sandbox, error)) (*Sandbox, error) {
	defer func() {
		k.mu.Lock()
		if k.promises[name] == p && (p.sandbox == nil || p.sandbox.isOver()) {
			delete(k.promises, name)
		}
		k.mu.Unlock()
		close(p.ready)
	}()
	s, err := create(p.request)
	if err == nil {
		p.sandbox = s
	}
	return s, err
}

// remind knows of the key of a sandbox that another daemon made.
func (k *keys) remind(s *Sandbox) {
	if s.key == "" {
		return
	}
	p := &promise{request: s.request, begun: s.info.Created, ready: make(chan struct{}), sandbox: s}
	close(p.ready)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.promises[promiseName(s.info.Owner, s.key)] = p
}

// dropKey forgets the key of a sandbox that is gone.
func (k *keys) dropKey(s *Sandbox) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := promiseName(s.info.Owner, s.key)
	if p := k.promises[name]; s.key != "" && p != nil && p.isDone() && p.sandbox == s {
		delete(k.promises, name)
	}
}

func (p *promise) isDone() bool {
	select {
	case <-p.ready:
		return true
	default:
		return false
	}
}

// isLive reports whether the promise is kept and its sandbox not at its end.
func (p *promise) isLive() bool {
	if !p.isDone() || p.sandbox == nil {
		return false
	}
	return !p.sandbox.isOver()
}

// digestOf tells requests apart, by all that makes a difference to the sandbox.
func digestOf(req Request) (string, error) {
	asked := struct {
		Run, Task, Template, Engine, Policy, PolicySource, Workdir, Snapshot, User string
		Lock                                                                       any
		Mounts                                                                     []mountpolicy.Mount
		Env, Labels                                                                map[string]string
		Linger, Plan                                                               bool
		Lifetime                                                                   Lifetime
		Account                                                                    Account
		HostUID, HostGID                                                           int
		Narrowing                                                                  policy.Narrowing `json:",omitzero"`
		Home                                                                       agenthome.Home   `json:",omitzero"`
		Keeps, MadeFrom                                                            []string         `json:",omitempty"`
	}{
		Run: req.Run, Task: req.Task, Template: req.Template, Engine: req.Engine, PolicySource: req.PolicySource, Workdir: req.Workdir,
		Snapshot: req.Snapshot, User: req.User, Lock: req.Lock, Mounts: req.Mounts, Env: req.Env, Labels: req.Labels, Linger: req.Linger, Plan: req.Plan,
		Lifetime: req.Lifetime, Account: req.Account, HostUID: req.HostUID, HostGID: req.HostGID,
		Narrowing: req.Narrowing, Home: req.Home, Keeps: req.Keeps, MadeFrom: req.MadeFrom,
	}
	if req.Policy != nil {
		asked.Policy = req.Policy.Digest()
	}
	data, err := json.Marshal(asked)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
