package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/policy/preset"
)

// outfit gives a request what the agent of --agent needs: its variables, where --env does
// not set them, and without a policy one by which it reaches its names. A policy that is
// given is not changed; one under which the agent could not work is refused.
func (f runFlags) outfit(req *api.CreateSandbox) error {
	if f.agent == "" {
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
	maps.Copy(env, req.Env)
	req.Env = env
	if f.policy == "" {
		req.Policy.Document = agent.Document()
		return nil
	}
	return reaches(req.Policy, agent)
}

// reaches refuses a policy that closes a name which an agent needs.
func reaches(given api.Policy, agent preset.Agent) error {
	p, err := policy.Parse(given.Source, given.Document)
	if err != nil {
		return err
	}
	needs, err := policy.Parse("the presets of "+agent.Name, agent.Document())
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
}

// agentRow is an agent.
type agentRow struct {
	Name        string            `json:"name"`
	Means       string            `json:"means"`
	Presets     []string          `json:"presets"`
	Environment map[string]string `json:"environment,omitempty"`
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
		list.Presets = append(list.Presets, row)
	}
	for _, name := range shipped.AgentNames() {
		a := shipped.Agents[name]
		list.Agents = append(list.Agents, agentRow{Name: name, Means: a.Means, Presets: a.Presets, Environment: a.Environment, State: a.State})
	}
	return list, nil
}

// hostText is an entry of a list of names in one line.
func hostText(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var parts []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		parts = append(parts, fmt.Sprintf("%s: %s", n.Content[i].Value, n.Content[i+1].Value))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
