package daemon

import (
	"maps"
	"net/url"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

// clientTimeout is how many seconds a package client waits for an answer: a person may
// be deciding.
const clientTimeout = 600

// clientSettings are the variables that package clients have in every sandbox.
func clientSettings() map[string]string {
	env := map[string]string{}
	for _, i := range all.Installers() {
		maps.Copy(env, i.Settings(installer.Surroundings{
			Bundle: channel.BundleFile, CA: channel.CAFile, Timeout: clientTimeout, Downloads: channel.SideDownloads,
		}))
	}
	return env
}

// clientEnv names a mirror to the clients, which would ask their compiled-in
// registry, whose name leads nowhere then. Sandboxes see every upstream on port
// 443 and without credentials. Of several upstreams for one ecosystem the first
// is named: which one is asked for a package is the gateway's to know.
func (g *gatewayProcess) clientEnv() map[string]string {
	env := map[string]string{}
	if len(g.d.opts.Config.Tools) > 0 {
		env["TOOL_PROXY_URL"] = "http://" + channel.ToolsHost // as the toolkit's programs look for them
	}
	named := map[pkgref.Ecosystem]bool{}
	for _, up := range g.currentUpstreams() {
		if named[up.Ecosystem] {
			continue
		}
		named[up.Ecosystem] = true
		index, err := url.Parse(up.Index)
		if err != nil {
			continue
		}
		registry := installer.Registry{Index: "https://" + index.Hostname() + index.EscapedPath(), Log: up.Log, BuiltIn: all.Clients().IsDefault(up)}
		for _, i := range all.Installers() {
			if i.Ecosystem() == up.Ecosystem {
				maps.Copy(env, i.Mirror(registry))
			}
		}
	}
	return env
}
