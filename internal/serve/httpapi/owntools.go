package httpapi

import (
	"context"
	"maps"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool/endpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of the tools that a caller gives a sandbox.
const (
	maxOwnTools    = 64
	maxDescription = 4 << 10
	minSecret      = 32
	maxSecret      = 1 << 10
)

// toolProxyVariable is where programs of the toolkit's design look for tools.
const toolProxyVariable = "TOOL_PROXY_URL"

// ownTools are the functions of the caller's own that a sandbox is given, nil if there are
// none, and the sandbox's variables with the one that tells of them. They are for callers on
// the Unix socket: what is asked there, a caller of this host could ask as well, and a token
// of the network could have the daemon ask on loopback what it can't reach.
func ownTools(body api.CreateSandbox, who caller) (*tool.Set, map[string]string, error) {
	switch {
	case len(body.Tools) == 0:
		return nil, body.Env, nil
	case who.token != nil:
		return nil, nil, fault.New(fault.ErrForbidden, "a sandbox's own tools are programs of the daemon's host, so only callers on its Unix socket may give it some; the others are in the daemon's configuration")
	case len(body.Tools) > maxOwnTools:
		return nil, nil, fault.Invalid("%d tools; a sandbox is given at most %d", len(body.Tools), maxOwnTools)
	case body.Plan:
		return nil, nil, fault.Invalid("a plan calls no tools, so give it none")
	}
	var all []tool.Tool
	for _, asked := range body.Tools {
		one, err := ownTool(asked)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, one)
	}
	set, err := tool.NewSet(all, ownSecrets(body.Tools))
	if err != nil {
		return nil, nil, err
	}
	env := map[string]string{toolProxyVariable: "http://" + channel.ToolsHost}
	maps.Copy(env, body.Env)
	return set, env, nil
}

// ownSecrets are those of all of a sandbox's own tools: in the answer of none may be another's.
func ownSecrets(asked []api.SandboxTool) tool.Secrets {
	var all []string
	for _, one := range asked {
		all = append(all, one.Secret)
	}
	return func(bool) ([]string, error) { return all, nil }
}

func ownTool(asked api.SandboxTool) (tool.Tool, error) {
	made := tool.Tool{
		Name: asked.Name, Description: asked.Description, JSON: asked.Answers == "json",
		Limits: tool.Limits{Time: milliseconds(asked.TimeoutMS)},
	}
	if err := tool.CheckName(asked.Name); err != nil {
		return made, err
	}
	switch {
	case len(asked.Description) > maxDescription:
		return made, fault.Invalid("the description of the tool %s has %d bytes; it may have %d", asked.Name, len(asked.Description), maxDescription)
	case asked.Answers != "" && asked.Answers != "text" && asked.Answers != "json":
		return made, fault.Invalid("the tool %s answers %.40q; it is text or json", asked.Name, asked.Answers)
	case asked.TimeoutMS < 0 || asked.TimeoutMS > tool.MaxTime.Milliseconds():
		return made, fault.Invalid("timeout_ms of the tool %s is %d; it is from 1 to %d, or 0 for 30 s", asked.Name, asked.TimeoutMS, tool.MaxTime/time.Millisecond)
	case len(asked.Secret) < minSecret || len(asked.Secret) > maxSecret || strings.ContainsFunc(asked.Secret, func(c rune) bool { return c <= ' ' || c > '~' }):
		return made, fault.Invalid("the secret of the tool %s has to have from %d to %d characters that a header can have", asked.Name, minSecret, maxSecret)
	}
	var err error
	if made.Schema, err = tool.ParseSchema(string(asked.Arguments)); err != nil {
		return made, fault.Invalid("the arguments of the tool %s: %s", asked.Name, err)
	}
	made.Runner, err = ownEndpoint(asked)
	return made, err
}

// ownEndpoint is the runner of a tool whose endpoint is on this machine, by its address: a
// name could lead anywhere.
func ownEndpoint(asked api.SandboxTool) (tool.Runner, error) {
	u, err := url.Parse(asked.Endpoint)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return nil, fault.Invalid("the endpoint of the tool %s has to be http://127.0.0.1:PORT/PATH", asked.Name)
	}
	if at, err := netip.ParseAddr(u.Hostname()); err != nil || !at.IsLoopback() {
		return nil, fault.Invalid("the endpoint of the tool %s has to have an address of the loopback interface; one elsewhere belongs in the daemon's configuration", asked.Name)
	}
	e, err := endpoint.New(asked.Endpoint)
	if err != nil {
		return nil, fault.Invalid("the endpoint of the tool %s: %s", asked.Name, err)
	}
	known := endpoint.Credential{Header: "Authorization", Value: "Bearer " + asked.Secret, Secrets: ownSecrets([]api.SandboxTool{asked})}
	e.Authorize(func(context.Context) (endpoint.Credential, error) { return known, nil })
	return e, nil
}
