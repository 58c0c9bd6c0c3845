// Package browser tests the page of package inspect, and the site of flyball learn, in a real browser. make test-page
// runs it. It is a module of its own, so that nobody else depends on what drives the browser.
package browser
