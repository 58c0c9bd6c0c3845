package main

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/peers/bench/loop"
	"github.com/flyball-dev/flyball/peers/bench/turns"
)

// runStorm creates, updates three times, and deletes the objects of a storm, at most rate writes a second. Then it
// marks the end.
func runStorm(ctx context.Context, c kubernetes.Interface, objects, turn, rate int) error {
	maps := c.CoreV1().ConfigMaps(loop.Namespace)
	names := func(n int) *corev1.ConfigMap {
		obj := loop.Object(n)
		obj.Name = fmt.Sprintf("storm-%d-%06d", turn, n)
		obj.Data[loop.AtKey] = strconv.FormatInt(time.Now().UnixNano(), 10)
		return obj
	}
	create := func(n int) error {
		_, err := maps.Create(ctx, names(n), metav1.CreateOptions{})
		return err
	}
	update := func(n int) error {
		_, err := maps.Update(ctx, names(n), metav1.UpdateOptions{})
		return err
	}
	remove := func(n int) error {
		return maps.Delete(ctx, names(n).Name, metav1.DeleteOptions{})
	}
	for _, write := range []func(int) error{create, update, update, update, remove} {
		if err := turns.Paced(ctx, objects, rate, write); err != nil {
			return err
		}
	}
	return mark(ctx, c, "yes")
}

// mark writes the marker: "" before a storm, anything else at its end.
func mark(ctx context.Context, c kubernetes.Interface, end string) error {
	marker, err := c.CoreV1().ConfigMaps(loop.Namespace).Get(ctx, loop.Marker, metav1.GetOptions{})
	if err != nil {
		return err
	}
	marker.Data = map[string]string{loop.EndKey: end}
	_, err = c.CoreV1().ConfigMaps(loop.Namespace).Update(ctx, marker, metav1.UpdateOptions{})
	return err
}

// awaitReady reads the line that a process writes when a storm may begin.
func awaitReady(from *bufio.Reader) error {
	line, err := from.ReadString('\n')
	if err == nil && line != "ready\n" {
		err = fmt.Errorf("the process wrote %q", line)
	}
	return err
}
