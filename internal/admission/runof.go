package admission

// RunOf is the run that a sandbox works for; "" if the sandbox is not known. It
// is for who names both in a log line.
func (c *Controller) RunOf(sandbox string) string {
	t, err := c.tenant(sandbox)
	if err != nil {
		return ""
	}
	return t.run.Run
}
