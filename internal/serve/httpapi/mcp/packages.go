package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// Limits of what is asked to be installed.
const (
	maxPackages   = 50
	maxSpecifier  = 200 // bytes
	maxReleases   = 300 // of a plan, that are told
	maxBecause    = 4 << 10
	planTimeoutMS = 300_000
)

type packagesInput struct {
	Ecosystem string   `json:"ecosystem" jsonschema:"python, node or go, or a client of one: npm, pip"`
	Packages  []string `json:"packages" jsonschema:"names, each with a version or range if you want one, as the ecosystem's client takes them: requests, requests>=2.31, express@4"`
}

// installCommand returns the command that installs them, with the client of their ecosystem.
func (in packagesInput) installCommand(known []installer.Installer) ([]string, error) {
	if len(in.Packages) == 0 || len(in.Packages) > maxPackages {
		return nil, failure(codeInvalid, fmt.Sprintf("packages names %d; it names 1 to %d", len(in.Packages), maxPackages), "")
	}
	var wanted []installer.Wanted
	for _, word := range in.Packages {
		// A word that begins with a dash would be an option, and what has a space two words of a file.
		bad := func(r rune) bool { return r <= ' ' || r > '~' }
		if word == "" || len(word) > maxSpecifier || word[0] == '-' || strings.ContainsFunc(word, bad) {
			return nil, failure(codeInvalid, fmt.Sprintf("%q is no package", text.Shorten(word, maxSpecifier)), "write a name, with a version or range behind it and without spaces")
		}
		wanted = append(wanted, installer.Wanted{Name: word, Asked: word})
	}
	of, err := pkgref.EcosystemCalled(in.Ecosystem)
	if err != nil {
		of = "" // the sentence below names those that can be
	}
	var names []string
	for _, i := range known {
		argv := i.Install(wanted)
		if argv == nil {
			continue
		}
		if names = append(names, string(i.Ecosystem())); i.Ecosystem() == of {
			return argv, nil
		}
	}
	return nil, failure(codeInvalid, fmt.Sprintf("packages of %q can't be installed by name", text.Shorten(in.Ecosystem, 32)),
		"write one of "+strings.Join(names, ", ")+"; or run the ecosystem's own client with run_command")
}

type installInput struct {
	packagesInput
	aboutSandbox

	Dir string `json:"dir,omitempty" jsonschema:"absolute folder of the project that gets them (default: the sandbox's own)"`
}

func installPackages(ctx context.Context, c call, in installInput) (ran, error) {
	argv, err := in.installCommand(c.peer.cfg.Installers)
	if err != nil {
		return ran{}, err
	}
	start, err := howToRun{Dir: in.Dir, Timeout: maxTimeout}.commandRequest(argv)
	if err != nil {
		return ran{}, err
	}
	return c.runCommand(ctx, in.Sandbox, start)
}

// plannedRelease is one of a plan.
type plannedRelease struct {
	Package  string   `json:"package"`
	Version  string   `json:"version"`
	Effect   string   `json:"effect"` // allow; hold: a person decides; deny; error: it was never shown
	Reason   string   `json:"reason"`
	Rule     string   `json:"rule,omitempty"`
	WantedBy []string `json:"wanted_by,omitempty"`
	Size     int64    `json:"size,omitempty"`
	Scripts  bool     `json:"scripts,omitempty"`  // something runs when it is installed
	Approval string   `json:"approval,omitempty"` // the request for approval that was filed for it
}

type planOutput struct {
	Releases  []plannedRelease `json:"releases"` // a release follows the first one that wanted it
	Total     int              `json:"total"`
	Truncated bool             `json:"truncated"`
	Allowed   int              `json:"allowed"`
	Held      int              `json:"held"` // a person decides about these
	Denied    int              `json:"denied"`
	Notes     []string         `json:"notes,omitempty"`
	Next      string           `json:"next"`
}

func planPackages(ctx context.Context, c call, in packagesInput) (planOutput, error) {
	made, err := c.planInstall(ctx, in, false, "")
	if err != nil {
		return planOutput{}, err
	}
	return viewPlan(made), nil
}

func viewPlan(made api.Plan) planOutput {
	out := planOutput{Releases: []plannedRelease{}, Total: len(made.Releases)}
	for _, r := range made.Releases {
		switch r.Effect {
		case plan.EffectAllow:
			out.Allowed++
		case plan.EffectHold:
			out.Held++
		default:
			out.Denied++
		}
		if len(out.Releases) == maxReleases {
			out.Truncated = true
			continue
		}
		v := plannedRelease{
			Package: ui.Printable(r.Name), Version: ui.Printable(r.Version), Effect: r.Effect, Reason: text.Shorten(ui.Printable(r.Reason), maxSentence),
			Rule: ui.Printable(r.Rule), Size: r.Size, Scripts: r.Scripts, Approval: r.Approval,
		}
		for _, by := range r.WantedBy[:min(len(r.WantedBy), 4)] {
			v.WantedBy = append(v.WantedBy, text.Shorten(ui.Printable(by), maxSpecifier))
		}
		out.Releases = append(out.Releases, v)
	}
	for _, note := range made.Notes[:min(len(made.Notes), 20)] {
		out.Notes = append(out.Notes, text.Shorten(ui.Printable(note), maxSentence))
	}
	switch {
	case out.Denied > 0:
		out.Next = "what is denied can not be approved: choose other packages or versions, or tell your user which rule stands in the way"
	case out.Held > 0:
		out.Next = "call request_approval with the same packages and a reason"
	default:
		out.Next = "call install_packages: it would go through now"
	}
	return out
}

// planInstall has the install resolved in a sandbox of its own, of the same run, and weighed. With
// file, what a person has to decide is filed for one.
func (c call) planInstall(ctx context.Context, in packagesInput, file bool, because string) (api.Plan, error) {
	p := c.peer
	argv, err := in.installCommand(p.cfg.Installers)
	if err != nil {
		return api.Plan{}, err
	}
	rewrite, err := plan.Of(p.cfg.Installers, argv, installer.Project{})
	if err != nil {
		return api.Plan{}, err
	}
	// The run is the peer's, which its first sandbox makes.
	if _, err := p.needSandbox(ctx, ""); err != nil {
		return api.Plan{}, err
	}
	req := p.request("a plan: " + strings.Join(argv, " "))
	req.Plan, req.Linger, req.Mounts = true, false, nil
	box, err := askBackend(ctx, p, func(b Backend) (api.Sandbox, error) { return b.CreateSandbox(ctx, req) })
	if err != nil {
		return api.Plan{}, err
	}
	defer func() {
		// The caller has its plan, or its error; the sandbox goes by itself in any case.
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_ = tellBackend(bye, p, func(b Backend) error { return b.DestroySandbox(bye, box.ID) })
	}()
	result, err := c.resolveInstall(ctx, box.ID, rewrite)
	if err != nil {
		return api.Plan{}, err
	}
	resolved := api.ResolvedPlan{Ecosystem: string(result.Ecosystem), Notes: result.Notes, Request: file, Because: because}
	for _, choice := range result.Choices {
		resolved.Releases = append(resolved.Releases, api.PlanChoice(choice))
	}
	return askBackend(ctx, p, func(b Backend) (api.Plan, error) { return b.MakePlan(ctx, box.Run, resolved) })
}

// resolveInstall runs the resolver and reads what it chose.
func (c call) resolveInstall(ctx context.Context, box string, rewrite installer.Rewrite) (installer.Result, error) {
	command, err := c.startCommand(ctx, box, api.StartCommand{Argv: rewrite.Argv, TimeoutMS: planTimeoutMS})
	if err != nil {
		return installer.Result{}, err
	}
	l := &left{sandbox: box, command: command.ID, out: &commandOutput{whole: installer.MaxOutput, take: func(n int) error { return backend.Take(ctx, n) }}}
	exit, _, err := c.followCommand(ctx, l)
	switch {
	case err != nil:
		return installer.Result{}, err
	case exit == nil:
		return installer.Result{}, failure(codeUnavailable, "the resolver waits for a person, which no plan does", "tell your user")
	case exit.Code != 0 || exit.Error != "" || exit.TimedOut:
		return installer.Result{}, c.unresolved(ctx, l, exit)
	case l.out.full != nil:
		return installer.Result{}, failure(codeTooMany, "the resolver's answer is longer than this token has room for: "+l.out.full.Error(), "wait for your other calls to return, or plan fewer packages at one time")
	}
	var result installer.Result
	// A reader of a guest's output must not end the daemon.
	err = safego.Try(func() error {
		docs, err := installer.ReadOutput(l.out.all, rewrite.Resolver.Documents)
		if err == nil {
			result, err = rewrite.Resolver.Result(docs)
		}
		return err
	})
	return result, err
}

// unresolved says why there is no plan: by what the resolver was refused, and its last words.
func (c call) unresolved(ctx context.Context, l *left, exit *api.Exit) error {
	why := fmt.Sprintf("the resolver ended with code %d", exit.Code)
	if exit.TimedOut {
		why = "the resolver took too long"
	}
	all, err := c.peer.newRefusals(ctx, l.sandbox, false)
	if err != nil {
		return err
	}
	for _, r := range all[:min(len(all), 3)] {
		why += "; refused: " + r.What + ": " + r.Reason
	}
	_, stderr, _ := l.out.bothTexts()
	if stderr = strings.TrimSpace(stderr); len(stderr) > 800 {
		stderr = stderr[len(stderr)-800:]
	}
	code, then := codeRefused, "check the names and versions; explain_policy says what is allowed"
	switch {
	case slices.ContainsFunc(all, func(r refused) bool { return r.Alarm }):
		then = alarmThen
	case onlyMissing(all) && exit.TimedOut:
		code, then = codeUnavailable, "call again later, or plan fewer packages at one time"
	case onlyMissing(all):
		code, then = codeInvalid, "check the names and versions"
	}
	return failure(code, "no plan can be made: "+why+"; its last words: "+stderr, then)
}
