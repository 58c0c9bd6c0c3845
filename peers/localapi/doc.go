// Package localapi sends the same requests to the real kube-apiserver and to Flyball's, and compares the answers. It
// holds only tests.
//
// The requests stand in testdata, as scripts that a person can read and write:
//
//	# What the request is about.
//	POST configmaps -> 201
//	@as a
//	metadata: {name: a}
//	data: {k: "1"}
//
//	PUT configmaps/a -> 409
//	@edit a
//	metadata: {resourceVersion: "1"}
//
// A request is a block of lines that ends at an empty line. It begins with what it is about, if that needs saying.
// Then comes the method, the path and the status code of the answer. MERGE, JSON, STRATEGIC and APPLY are PATCH with
// the content type of that name. A path that does not begin with a slash is a resource in the script's namespace,
// ${ns}; the group and version are added. What is applied gets the name in the path. Values of a query are escaped by
// the runner.
//
// Lines with @ follow:
//
//	@as NAME        keep the answer; ${NAME.metadata.uid} is a part of it from here on
//	@edit NAME      send the answer kept under NAME, with the body merged into it
//	@bare           do not add apiVersion and kind to the body
//	@raw            send the body as it stands, not as JSON
//	@protobuf       send the body in protobuf
//	@retry          repeat the request until the answer has the stated code
//	@codeonly       compare nothing but the code
//	@Header: value  add a header
//
// The rest is the body, in YAML. A watch has a name, and takes two blocks:
//
//	WATCH w configmaps?resourceVersion=${list.metadata.resourceVersion} -> 200
//
//	END w -> 3
//
// END waits for the stated number of events (and for the end of the stream, if "closed" follows) and compares them.
//
// Before two answers are compared, what must differ gets a name: UIDs, times, addresses and ports that the server
// chose, the ends of generated names, and resource versions. A resource version is named for the line that showed it
// first, and at the end of a script all versions must stand in the same order on both sides.
//
// TestTraffic plays in the same way what real clients sent. It was recorded once: for clients in Go and for commands by
//
//	go test ./localapi -run TestRecordTraffic -record=go,kubectl-1.37=/bin/kubectl,helm-4.3=/bin/helm,python=/usr/bin/python3
//
// TestGenerated plays sequences that chance made of a seed in the same way, and TestGeneratedExpressions definitions
// and policies with generated expressions in CEL.
//
// TestDiscovery compares what both say of themselves, TestDeleteOptions what they make of the bodies of deletes,
// TestAuthorization what users may do, by asking and by doing. The benchmarks measure both:
//
//	go test -run '^$' -bench . ./localapi
//
// What is meant to differ is listed in one table, known in known_test.go. A listed difference that no longer occurs
// fails the test.
package localapi
