package main

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// mcpName is what the server is called in a client's configuration.
const mcpName = "cofferdam"

// mcpServer is what a client is told of the server: a command line or, with a URL, an address
// and the variable that has the token.
type mcpServer struct {
	command  string
	args     []string
	url      string
	tokenEnv string
}

// mcpClient is a program that has MCP servers configured.
type mcpClient struct {
	name    string
	user    func(home string) string // the file of a user
	project string                   // the file of a project
	toml    bool
	// member is where the entry stands in a document, by the names of objects.
	member func(document map[string]any) []string
	entry  func(s mcpServer) any
	// shared is the form of a project's file that other clients read, too; nil: entry's.
	shared func(s mcpServer) any
	remote bool // entry knows addresses
}

// mcpClients are those that can be configured, by name.
func mcpClients() []mcpClient {
	servers := func(map[string]any) []string { return []string{"mcpServers", mcpName} }
	return []mcpClient{
		{
			name: "claude", project: ".mcp.json", member: servers, entry: claudeEntry, remote: true,
			user: func(home string) string {
				return filepath.Join(cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), home), ".claude.json")
			},
		},
		{
			name: "codex", project: ".codex/config.toml", toml: true, entry: codexEntry, remote: true,
			member: func(map[string]any) []string { return []string{"mcp_servers", mcpName} },
			user: func(home string) string {
				return filepath.Join(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "config.toml")
			},
		},
		{
			name: "gemini", project: ".gemini/settings.json", member: servers, entry: geminiEntry, remote: true,
			user: func(home string) string {
				return filepath.Join(cmp.Or(os.Getenv("GEMINI_CLI_HOME"), home), ".gemini", "settings.json")
			},
		},
		{
			name: "opencode", project: "opencode.json", member: opencodeMember, entry: opencodeEntry, remote: true,
			user: func(home string) string {
				return filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "opencode", "opencode.json")
			},
		},
		{
			name: "copilot", project: ".mcp.json", member: servers, entry: copilotEntry, shared: claudeEntry,
			user: func(home string) string { return filepath.Join(home, ".copilot", "mcp-config.json") },
		},
		{
			name: "qwen", project: ".qwen/settings.json", member: servers, entry: plainEntry,
			user: func(home string) string { return filepath.Join(home, ".qwen", "settings.json") },
		},
	}
}

func mcpClientNames() (names []string) {
	for _, c := range mcpClients() {
		names = append(names, c.name)
	}
	return names
}

func mcpClientOf(name string) (mcpClient, error) {
	for _, c := range mcpClients() {
		if c.name == name {
			return c, nil
		}
	}
	return mcpClient{}, fault.Invalid("there is no client %q here; known are claude, codex, gemini, opencode, copilot and qwen", name)
}

// serverEntry is what the client's configuration has of the server.
func (c mcpClient) serverEntry(s mcpServer, project bool) any {
	if project && c.shared != nil {
		return c.shared(s)
	}
	return c.entry(s)
}

// configFile is the configuration that is meant.
func (c mcpClient) configFile(project bool) (string, error) {
	if project {
		return filepath.Abs(c.project)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fault.Invalid("it is not known where your home directory is (%s); set HOME, or give --project", err)
	}
	return c.user(home), nil
}

// bearer is the header by which a client shows the token that a variable has.
func bearer(variable string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + variable}
}

// commandEntry is a command line as most clients have it. Members are in the order of the text.
type commandEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
	Tools   []string `json:"tools,omitempty" toml:"-"`
}

// addressEntry is an address as most clients have it.
type addressEntry struct {
	Type    string            `json:"type"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
}

func plainEntry(s mcpServer) any { return commandEntry{Command: s.command, Args: s.args} }

func claudeEntry(s mcpServer) any {
	if s.url != "" {
		return addressEntry{Type: "http", URL: s.url, Headers: bearer("${" + s.tokenEnv + "}")}
	}
	return commandEntry{Type: "stdio", Command: s.command, Args: s.args}
}

func geminiEntry(s mcpServer) any {
	if s.url != "" {
		return addressEntry{Type: "http", URL: s.url, Headers: bearer("$" + s.tokenEnv)}
	}
	return plainEntry(s)
}

func copilotEntry(s mcpServer) any {
	return commandEntry{Type: "local", Command: s.command, Args: s.args, Tools: []string{"*"}}
}

// codexEntry: codex refuses a token in the file.
func codexEntry(s mcpServer) any {
	if s.url != "" {
		return struct {
			URL      string `toml:"url"`
			TokenEnv string `toml:"bearer_token_env_var"`
		}{s.url, s.tokenEnv}
	}
	return struct {
		Command string   `toml:"command"`
		Args    []string `toml:"args"`
	}{s.command, s.args}
}

// opencodeMember: its second version has the servers one object deeper.
func opencodeMember(document map[string]any) []string {
	if in, ok := document["mcp"].(map[string]any); ok {
		if _, second := in["servers"].(map[string]any); second {
			return []string{"mcp", "servers", mcpName}
		}
	}
	return []string{"mcp", mcpName}
}

func opencodeEntry(s mcpServer) any {
	if s.url != "" {
		return addressEntry{Type: "remote", URL: s.url, Headers: bearer("{env:" + s.tokenEnv + "}")}
	}
	return struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
	}{"local", append([]string{s.command}, s.args...)}
}
