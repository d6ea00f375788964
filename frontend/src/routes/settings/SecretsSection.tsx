import { Button, Textarea, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type SyntheticEvent } from "react";
import { Confirm } from "@/components/Confirm";
import { ErrorNote } from "@/components/ErrorNote";
import { Loading } from "@/components/Loading";
import { Note } from "@/components/Note";
import { num, Table } from "@/components/Table";
import { When } from "@/components/When";
import { remove, secretsQuery, store } from "@/services/secrets";

/** The secrets by name, and a form that stores one. No value is ever shown. */
export function SecretsSection() {
  const queries = useQueryClient();
  const secrets = useQuery(secretsQuery);
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [doomed, setDoomed] = useState<string | null>(null);

  const refresh = () => void queries.invalidateQueries({ queryKey: ["secrets"] });
  const storing = useMutation({
    mutationFn: () => store(name.trim(), value),
    onSuccess: () => {
      setName("");
      setValue("");
      refresh();
    },
  });
  const removing = useMutation({
    mutationFn: remove,
    onSuccess: () => {
      setDoomed(null);
      refresh();
    },
  });

  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    storing.mutate();
  };

  return (
    <section className="card" aria-label="Secrets">
      <Title order={2} mb="xs">
        Secrets
      </Title>
      <p>
        Trials read a secret as a file, which the sweep file names:{" "}
        <code>secrets: {"[{name: NAME, file: /run/secrets/NAME}]"}</code>. Every sweep may read every secret; nobody can
        read its value here.
      </p>
      {secrets.isPending && <Loading what="secrets" />}
      {secrets.isError && (
        <ErrorNote error={secrets.error} doing="Reading secrets" onRetry={() => void secrets.refetch()} />
      )}
      {secrets.data && secrets.data.data.length === 0 && <p>There is no secret.</p>}
      {secrets.data && secrets.data.data.length > 0 && (
        <Table
          label="Secrets"
          heads={["Name", num("Version"), "Stored by", num("Stored"), "Action"]}
          rows={secrets.data.data.map((secret) => ({
            key: secret.name,
            cells: [
              <span className="mono">{secret.name}</span>,
              secret.version,
              secret.updated_by,
              <When at={secret.updated_at} />,
              <Button
                size="xs"
                variant="default"
                onClick={() => {
                  removing.reset();
                  setDoomed(secret.name);
                }}
                aria-label={`Delete ${secret.name}`}
              >
                Delete…
              </Button>,
            ],
          }))}
        />
      )}
      <form onSubmit={send} autoComplete="off" style={{ marginTop: 14, display: "grid", gap: 10, maxWidth: 640 }}>
        <TextInput
          label="Secret"
          required
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          description="One that is there gets another value, for trials that start later"
        />
        <Textarea
          label="Value"
          required
          autosize
          minRows={2}
          maxRows={8}
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
          description="As it is written here, line ends too"
          spellCheck={false}
          autoComplete="off"
          classNames={{ input: "mono" }}
        />
        <Button type="submit" loading={storing.isPending} style={{ justifySelf: "start" }}>
          Store the secret
        </Button>
        {storing.isError && <ErrorNote error={storing.error} doing="Storing the secret" />}
        {storing.isSuccess && (
          <Note kind={storing.data.warnings === undefined ? "good" : "warn"}>
            {storing.data.secret.name} is stored as version {storing.data.secret.version}.
            {storing.data.warnings?.map((warning) => (
              <div key={warning.code}>{warning.detail}</div>
            ))}
          </Note>
        )}
      </form>
      <Confirm
        opened={doomed !== null}
        title={`Delete ${doomed ?? ""}?`}
        action="Delete"
        danger
        busy={removing.isPending}
        error={removing.error}
        onConfirm={() => doomed !== null && removing.mutate(doomed)}
        onClose={() => setDoomed(null)}
      >
        <p>Its value cannot be brought back. A secret that a sweep still mounts stays.</p>
      </Confirm>
    </section>
  );
}
