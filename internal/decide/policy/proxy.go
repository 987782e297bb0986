package policy

// compileProxy reads whether tools inside are offered a proxy.
func compileProxy(c *compiler, v value) {
	on, ok := c.boolean(v)
	switch c.policy.proxy = on; {
	case ok && on:
		c.explainEnforced(v, "a proxy inside (HTTP and SOCKS 5) leads where the network does, and nowhere else; HTTP_PROXY and its kin tell tools of it")
	case ok:
		c.explainEnforced(v, "there is no proxy inside: tools connect to names by themselves")
	}
}
