package sandbox

import "testing"

// A machine whose PATH leads nowhere has the namespaces that it has.
func TestNamespacesAreFoundWithoutPrograms(t *testing.T) {
	var with, without Capabilities
	with.detectUserNamespaces()
	t.Setenv("PATH", "")
	without.detectUserNamespaces()
	if without.UserNamespaces != with.UserNamespaces {
		t.Errorf("with programs %+v, without them %+v", with.UserNamespaces, without.UserNamespaces)
	}
}
