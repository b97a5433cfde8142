-- Two roles in the database that psql is connected to: the owner, who migrates and archives, and the
-- service's own, which "manage.py grant_service_role" lets work and do no more. A superuser runs this
-- once, with OWNER_PASSWORD and SERVICE_PASSWORD in the environment; compose.yaml does so by itself.
\set ON_ERROR_STOP on
\if :{?owner}
\else
  \set owner infra_owner
\endif
\if :{?service}
\else
  \set service infra
\endif
\set owner_password `printf %s "$OWNER_PASSWORD"`
\set service_password `printf %s "$SERVICE_PASSWORD"`
CREATE ROLE :"owner" LOGIN PASSWORD :'owner_password';
CREATE ROLE :"service" LOGIN PASSWORD :'service_password';
SELECT current_database() AS database \gset
ALTER DATABASE :"database" OWNER TO :"owner";
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO :"service";
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO :"owner";
