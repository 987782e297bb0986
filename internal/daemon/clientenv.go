package daemon

import (
	"maps"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/upstream/discover"
)

// clientEnv names a mirror to the clients, which would ask their compiled-in
// registry, whose name leads nowhere then. Sandboxes see every upstream on port
// 443 and without credentials. Of several upstreams for one ecosystem the first
// is named: which one is asked for a package is the gateway's to know.
func (g *gatewayProcess) clientEnv() map[string]string {
	env := map[string]string{}
	named := map[pkgref.Ecosystem]bool{}
	for _, up := range g.current() {
		if named[up.Ecosystem] {
			continue
		}
		named[up.Ecosystem] = true
		index, err := url.Parse(up.Index)
		if err != nil {
			continue
		}
		seen := "https://" + index.Hostname() + index.EscapedPath()
		switch {
		case up.Ecosystem == pkgref.Go:
			maps.Copy(env, goEnv(seen, up))
		case discover.IsDefault(up): // it is asked without being named
		case up.Ecosystem == pkgref.Python:
			maps.Copy(env, map[string]string{"PIP_INDEX_URL": seen, "UV_DEFAULT_INDEX": seen})
		case up.Ecosystem == pkgref.Node:
			maps.Copy(env, map[string]string{
				"npm_config_registry": seen, "COREPACK_NPM_REGISTRY": strings.TrimSuffix(seen, "/"),
				"YARN_NPM_REGISTRY_SERVER": strings.TrimSuffix(seen, "/"), "BUN_CONFIG_REGISTRY": seen,
			})
		}
	}
	return env
}

// goEnv names the proxy alone: go's own default would go on to the modules'
// repositories, which no sandbox reaches, and hide why the proxy refused.
func goEnv(proxy string, up upstream.Config) map[string]string {
	env := map[string]string{
		"GOPROXY": strings.TrimSuffix(proxy, "/"),
		// Over what the user's go/env may say: all names go one way, and all are
		// looked up in the checksum database.
		"GONOPROXY": "none", "GONOSUMDB": "none",
	}
	switch {
	case up.Log == "":
		env["GOSUMDB"] = "off" // there is none to ask
	case strings.Contains(up.Log, "+"):
		env["GOSUMDB"] = up.Log
	}
	return env
}
