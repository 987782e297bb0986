package main

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy/preset"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// httpsPort is where the APIs of models are.
const httpsPort = 443

// agentHome is the home directory in sandboxes of our templates.
const agentHome = "/home/agent"

// outfit gives a request what the agent of --agent needs: its variables, where --env does
// not set them, and without a policy one by which it reaches its names. A policy that is
// given is not changed; one under which the agent could not work is refused.
func (f runFlags) outfit(req *api.CreateSandbox) error {
	if f.agent == "" {
		if f.home != "" {
			return fault.Invalid("--home keeps what an agent has below its home directory; say with --agent which one that is")
		}
		return nil
	}
	shipped, err := preset.Read()
	if err != nil {
		return err
	}
	agent, known := shipped.Agents[f.agent]
	if !known {
		return fault.Invalid("--agent: there is no agent %q; known here: %s", f.agent, strings.Join(shipped.AgentNames(), ", "))
	}
	env := maps.Clone(agent.Environment)
	if env == nil {
		env = map[string]string{}
	}
	if f.home != "" {
		if len(agent.State) == 0 {
			return fault.Invalid("--home: it is not known here where %s keeps what it keeps", agent.Name)
		}
		req.Home = &api.Home{Name: f.home, Keeps: agent.State}
	}
	for name, path := range agent.Settings {
		env[name] = agentHome + "/" + path
	}
	maps.Copy(env, req.Env)
	req.Env = env
	if f.policy == "" {
		req.Policy.Document = agent.Document(shipped, nil)
		return nil
	}
	return reaches(req.Policy, agent, shipped)
}

// addAgentKeys gives an agent that has no policy but its own the keys that the daemon's
// configuration declares for it: the sandbox gets placeholders. It says so if there is none. The
// person decides what --env sets and what a policy says.
func (f runFlags) addAgentKeys(list func() ([]api.Secret, error), req *api.CreateSandbox, say func(format string, args ...any)) error {
	if f.agent == "" {
		return nil
	}
	shipped, err := preset.Read()
	if err != nil {
		return err
	}
	agent := shipped.Agents[f.agent]
	var own, has []string // keys in variables of the person's, and those that are declared
	declared, err := list()
	if err != nil && client.StatusOf(err) != http.StatusForbidden { // a token may not ask, and brings no policy
		return err
	}
	for name, variable := range agent.Keys {
		if _, given := req.Env[variable]; given {
			own = append(own, name)
		} else if isDeclared(declared, name, shipped.Presets[name]) {
			has = append(has, name)
		}
	}
	if f.policy == "" {
		req.Policy.Document = agent.Document(shipped, has)
	} else if has, err = listPresetsWithSecrets(req.Policy, agent, shipped); err != nil {
		return err
	}
	if len(agent.Keys) > 0 && len(own)+len(has) == 0 && f.home == "" { // a home may have a login

		say("note: %s starts without a key; %s", agent.Name, keyAdvice(agent, shipped, f.policy != ""))
	}
	return nil
}

// isDeclared tells whether a preset's key is among the secrets, for each of its hosts.
func isDeclared(declared []api.Secret, name string, p preset.Preset) bool {
	return slices.ContainsFunc(declared, func(s api.Secret) bool {
		return s.Name == name && !slices.ContainsFunc(p.HostNames(), func(host string) bool { return !slices.Contains(s.Hosts, host) })
	})
}

// keyAdvice says how an agent gets a key that it never sees.
func keyAdvice(agent preset.Agent, shipped preset.Shipped, ownPolicy bool) string {
	name := slices.Sorted(maps.Keys(agent.Keys))[0]
	declare := fmt.Sprintf("secrets: [ { preset: %s, file: /path/of/the/key } ]", name)
	if ownPolicy {
		inject := fmt.Sprintf("credentials: { inject: [ { host: %s, secret: %s, env: %s } ] }", shipped.Presets[name].HostNames()[0], name, agent.Keys[name])
		return fmt.Sprintf("for one that it never sees, add to the policy %s, and to the daemon's configuration %s", inject, declare)
	}
	return fmt.Sprintf("for one that it never sees, add to the daemon's configuration %s, and start the daemon anew (cofferdam stop)", declare)
}

// listPresetsWithSecrets lists the presets at whose hosts a policy has a secret put in.
func listPresetsWithSecrets(asked api.Policy, agent preset.Agent, shipped preset.Shipped) ([]string, error) {
	p, err := policy.Parse(asked.Source, asked.Document)
	if err != nil {
		return nil, err
	}
	var all []string
	for name := range agent.Keys {
		if slices.ContainsFunc(shipped.Presets[name].HostNames(), func(host string) bool {
			return len(policy.CredentialsAt(p, host, httpsPort)) > 0
		}) {
			all = append(all, name)
		}
	}
	return all, nil
}

// reaches refuses a policy that closes a name which an agent needs.
func reaches(given api.Policy, agent preset.Agent, shipped preset.Shipped) error {
	p, err := policy.Parse(given.Source, given.Document)
	if err != nil {
		return err
	}
	needs, err := policy.Parse("the presets of "+agent.Name, agent.Document(shipped, nil))
	if err != nil {
		return err
	}
	for _, name := range needs.NetworkAllowlist() {
		if port := name.Port; p.Host(name.Host, port).Effect == policy.Deny && !name.Wildcard {
			return fault.Invalid("the policy %s does not let %s reach %s; add to it: network_presets: [ %s ]", given.Source, agent.Name, name, strings.Join(agent.Presets, ", "))
		}
	}
	return nil
}

func completeAgents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	shipped, err := preset.Read()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return shipped.AgentNames(), cobra.ShellCompDirectiveNoFileComp
}

// presetRow is a preset, as `policy presets --json` writes it.
type presetRow struct {
	Name  string   `json:"name"`
	Means string   `json:"means"`
	Hosts []string `json:"hosts"`
	// Variable is where programs look for a key of it; "": none is known.
	Variable string `json:"key_variable,omitempty"`
}

// agentRow is an agent.
type agentRow struct {
	Name        string            `json:"name"`
	Means       string            `json:"means"`
	Presets     []string          `json:"presets"`
	Environment map[string]string `json:"environment,omitempty"`
	Keys        map[string]string `json:"keys,omitempty"` // presets, with the variables of their keys
	State       []string          `json:"state,omitempty"`
}

// presetList is all of them.
type presetList struct {
	Presets []presetRow `json:"presets"`
	Agents  []agentRow  `json:"agents"`
}

// listPresets makes the list of what this version has.
func listPresets() (presetList, error) {
	var list presetList
	shipped, err := preset.Read()
	if err != nil {
		return list, err
	}
	for _, name := range shipped.Names() {
		row := presetRow{Name: name, Means: shipped.Presets[name].Means}
		for _, host := range shipped.Presets[name].Hosts {
			row.Hosts = append(row.Hosts, hostText(&host))
		}
		if key := shipped.Presets[name].Key; key != nil {
			row.Variable = key.Variable
		}
		list.Presets = append(list.Presets, row)
	}
	for _, name := range shipped.AgentNames() {
		a := shipped.Agents[name]
		list.Agents = append(list.Agents, agentRow{Name: name, Means: a.Means, Presets: a.Presets, Environment: a.Environment, Keys: a.Keys, State: a.State})
	}
	return list, nil
}

// hostText is an entry of a list of names in one line.
func hostText(n *yaml.Node) string {
	var parts []string
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style == yaml.DoubleQuotedStyle {
			return strconv.Quote(n.Value)
		}
		return n.Value
	case yaml.SequenceNode:
		for _, element := range n.Content {
			parts = append(parts, hostText(element))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		parts = append(parts, fmt.Sprintf("%s: %s", n.Content[i].Value, hostText(n.Content[i+1])))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
