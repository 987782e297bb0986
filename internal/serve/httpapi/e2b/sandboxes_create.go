package e2b

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// The lifetime of a sandbox whose client does not say one.
const (
	defaultTimeout1 = 15 * time.Second
	defaultTimeout2 = 300 * time.Second
)

// The user that clients of this wire know, and its home.
const (
	userName = "user"
	userHome = "/home/user"
)

// newSandbox is the body of a create.
type newSandbox struct {
	TemplateID          string            `json:"templateID"`
	Timeout             *int64            `json:"timeout"` // seconds
	Metadata            map[string]string `json:"metadata"`
	EnvVars             map[string]string `json:"envVars"`
	Secure              *bool             `json:"secure"`
	AllowInternetAccess *bool             `json:"allow_internet_access"`
	Network             *networkConfig    `json:"network"`
	AutoPause           *bool             `json:"autoPause"`
	AutoPauseMemory     *bool             `json:"autoPauseMemory"`
	AutoResume          *autoResume       `json:"autoResume"`
	// MCP is the client's own matter: it starts the gateway in the sandbox by a command,
	// and tells its user if the template has none.
	MCP jsontext.Value `json:"mcp"`
	// A request with these is refused: see unsupported.
	IAM          jsontext.Value `json:"iam"`
	VolumeMounts jsontext.Value `json:"volumeMounts"`
}

type autoResume struct {
	Enabled bool   `json:"enabled"`
	Timeout *int64 `json:"timeout"` // ours is the sandbox's own
}

// unsupported says what a create asks for that no sandbox here has; "": nothing.
func (n newSandbox) unsupported() string {
	switch {
	case asksForMore(n.IAM):
		return "iam: sandboxes have no workload identity here, and no credential is handed to them"
	case asksForMore(n.VolumeMounts):
		return "volumeMounts: there are no volumes here; write files into the sandbox, and snapshot it to keep them"
	case n.filesAtEnd() && n.AutoResume != nil && n.AutoResume.Enabled:
		return "autoResume: a sandbox of which a pause keeps no memory does not go on by itself; resume it, or leave autoPauseMemory out"
	}
	return ""
}

// filesAtEnd tells whether a pause at the sandbox's end is to keep files alone.
func (n newSandbox) filesAtEnd() bool { return n.AutoPauseMemory != nil && !*n.AutoPauseMemory }

// asksForMore tells whether a field has more than nothing in it.
func asksForMore(v jsontext.Value) bool {
	text := strings.Join(strings.Fields(string(v)), "")
	return !slices.Contains([]string{"", "null", "{}", "[]", `{"tokens":{}}`}, text)
}

func (c *Control) serveCreate(timeout time.Duration) controlHandler {
	return func(w http.ResponseWriter, r *keyedRequest) error {
		var body newSandbox
		if err := readJSON(r, &body); err != nil {
			return err
		}
		req, err := c.request(r, body, timeout)
		if err != nil {
			return err
		}
		if err := backend.Promise(r.Context(), 1, req.Labels); err != nil {
			return err
		}
		sb, err := c.cfg.Sandboxes.Create(r.Context(), req)
		if err != nil {
			return err
		}
		return writeAnswer(r.Context(), w, http.StatusCreated, c.created(sb.Info()))
	}
}

// request translates what a client asks for. Anything beyond what the policy
// gives is left out, and that shows in the sandbox's info.
func (c *Control) request(r *keyedRequest, body newSandbox, timeout time.Duration) (sandbox.Request, error) {
	if sentence := body.unsupported(); sentence != "" {
		return sandbox.Request{}, fault.Invalid("%s", sentence)
	}
	if err := checkMetadata(body.Metadata); err != nil {
		return sandbox.Request{}, err
	}
	life, err := c.timeout(body.Timeout, timeout)
	if err != nil {
		return sandbox.Request{}, err
	}
	if body.AutoPause != nil && *body.AutoPause {
		life.Then = sandbox.ThenPause
		if body.filesAtEnd() {
			life.Then = sandbox.ThenPauseFiles
		}
	}
	key, err := backend.IdempotencyKey(r.Request)
	if err != nil {
		return sandbox.Request{}, err
	}
	narrowing, err := body.Network.narrowing(body.AllowInternetAccess)
	if err != nil {
		return sandbox.Request{}, err
	}
	req := sandbox.Request{
		Env: maps.Clone(body.EnvVars), Labels: labelsOf(body), Linger: true, Lifetime: life,
		Owner: backend.OwnerOf(r.token), IdempotencyKey: key, User: "token " + r.token.Name,
		HostUID: c.cfg.HostUID, HostGID: c.cfg.HostGID, Narrowing: narrowing,
	}
	of, err := c.findSource(r.Context(), r.token, body.TemplateID, &req)
	if err != nil {
		return sandbox.Request{}, err
	}
	named, err := c.choosePolicy(r.token, body.Metadata[metadataPolicy], of)
	if err != nil {
		return sandbox.Request{}, err
	}
	req.Policy, req.PolicyText, req.PolicySource = named.Policy, named.Text, named.Path
	req.Labels[labelPolicy], req.Labels[labelTemplate] = named.Name, body.TemplateID
	return req, nil
}

func labelsOf(body newSandbox) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, body.Metadata)
	if body.Network != nil && body.Network.AllowPublicTraffic != nil && !*body.Network.AllowPublicTraffic {
		labels[labelPrivate] = "true"
	}
	if body.AutoResume != nil && body.AutoResume.Enabled {
		labels[labelAutoResume] = "true"
	}
	return labels
}

// timeout reads seconds; what is absent is the route's own.
func (c *Control) timeout(seconds *int64, absent time.Duration) (sandbox.Lifetime, error) {
	if seconds == nil {
		return sandbox.Lifetime{TTL: absent}, nil
	}
	most := int64(c.cfg.MaxTimeout / time.Second)
	if *seconds < 0 || *seconds > most {
		return sandbox.Lifetime{}, fault.Invalid("the timeout is %d seconds; it may be from 0 to %d", *seconds, most)
	}
	// No time at all is not the same as no end.
	return sandbox.Lifetime{TTL: max(time.Duration(*seconds)*time.Second, time.Millisecond)}, nil
}

// baseTemplates are what clients ask for that do not care.
func baseTemplates() []string { return []string{"base", interpreterTemplate} }

// interpreterTemplate is what clients of the code interpreter ask for.
const interpreterTemplate = "code-interpreter-v1"

// findSource finds what a sandbox is made from: a template or a snapshot of the
// caller's, which is returned.
func (c *Control) findSource(ctx context.Context, t token.Token, name string, req *sandbox.Request) (*sandbox.Snapshot, error) {
	if name == "" {
		return nil, fault.Invalid("templateID is missing; %q is the default template", baseTemplates()[0])
	}
	plain := nameOf(name).keptName() // a template has the default tag and no other
	if slices.Contains(baseTemplates(), plain) {
		req.Template = c.baseOf(ctx, plain)
	} else if slices.ContainsFunc(c.offered(), func(k template.Known) bool { return k.Name == plain }) {
		req.Template = plain
	} else {
		of, err := c.snapshotOf(ctx, t, name)
		if err != nil {
			return nil, err
		}
		if of == nil {
			return nil, notFound("template or snapshot", name)
		}
		req.Snapshot = of.ID
		return of, nil
	}
	req.Account = Account()
	return nil, nil
}

// baseOf is the template that a base name stands for: of the code interpreter's clients the
// one that has kernels, if it is built.
func (c *Control) baseOf(ctx context.Context, name string) string {
	if name == interpreterTemplate {
		built, err := c.cfg.Templates.List(ctx)
		if err == nil && slices.ContainsFunc(built, func(t template.Template) bool { return t.Name == template.NameInterpreter }) {
			return template.NameInterpreter
		}
	}
	return c.cfg.DefaultTemplate
}

// Account is the user that the SDKs expect in a sandbox.
func Account() sandbox.Account { return sandbox.Account{Name: userName, Home: userHome} }

// choosePolicy finds the policy of a new sandbox: the one that the client chose,
// else that of the sandbox whose snapshot it is made from, else the token's. It
// is the policy of that name as it is today, not as it was when the snapshot was
// made.
func (c *Control) choosePolicy(t token.Token, chosen string, of *sandbox.Snapshot) (*namedpolicy.Named, error) {
	name := t.Policy
	if of != nil && of.Of.Labels[labelPolicy] != "" {
		name = of.Of.Labels[labelPolicy]
	}
	if chosen != "" {
		name = chosen
	}
	named, err := backend.TokenPolicy(c.cfg.Policies, t, name)
	if err != nil && !errors.Is(err, fault.ErrForbidden) {
		return nil, fault.New(fault.ErrForbidden, "the policy %q can't be used: %s", text.Shorten(name, 64), errorSentence(err))
	}
	return named, err
}
