package stripe

import "testing"

// Go reads the proxy variables once a process and spares loopback addresses, so only the setting itself can be looked at.
func TestTransportSettings(t *testing.T) {
	tr := newTransport(7)
	if tr.Proxy != nil {
		t.Error("a proxy of the environment would see charges and the key")
	}
	if tr.ForceAttemptHTTP2 || tr.MaxIdleConnsPerHost != 7 || !tr.DisableCompression {
		t.Errorf("%+v", tr)
	}
}
